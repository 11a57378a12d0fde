import { Page } from "../../parts/page";
import { EmptyState } from "../../parts/states";

export default function Screen() {
  return (
    <Page title="Images">
      <EmptyState icon="images" title="Images">
        This screen is not built yet.
      </EmptyState>
    </Page>
  );
}
