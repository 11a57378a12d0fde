import { Page } from "../../parts/page";
import { EmptyState } from "../../parts/states";

export default function Screen() {
  return (
    <Page title="API keys">
      <EmptyState icon="key" title="API keys">
        This screen is not built yet.
      </EmptyState>
    </Page>
  );
}
