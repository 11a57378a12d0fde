import { Page } from "../../parts/page";
import { EmptyState } from "../../parts/states";

export default function Screen() {
  return (
    <Page title="Usage">
      <EmptyState icon="chart" title="Usage">
        This screen is not built yet.
      </EmptyState>
    </Page>
  );
}
