import { Page } from "../../parts/page";
import { EmptyState } from "../../parts/states";

export default function Screen() {
  return (
    <Page title="Shares">
      <EmptyState icon="link" title="Shares">
        This screen is not built yet.
      </EmptyState>
    </Page>
  );
}
