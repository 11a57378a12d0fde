import { Page } from "../../parts/page";
import { EmptyState } from "../../parts/states";

export default function Screen() {
  return (
    <Page title="Live input">
      <EmptyState icon="live" title="Live input">
        This screen is not built yet.
      </EmptyState>
    </Page>
  );
}
