import { Page } from "../../parts/page";
import { EmptyState } from "../../parts/states";

export default function Screen() {
  return (
    <Page title="Live">
      <EmptyState icon="live" title="Live">
        This screen is not built yet.
      </EmptyState>
    </Page>
  );
}
