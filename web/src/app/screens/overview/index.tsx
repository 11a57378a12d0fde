import { Page } from "../../parts/page";
import { EmptyState } from "../../parts/states";

export default function Screen() {
  return (
    <Page title="Overview">
      <EmptyState icon="overview" title="Overview">
        This screen is not built yet.
      </EmptyState>
    </Page>
  );
}
