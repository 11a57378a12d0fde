import { Page } from "../../parts/page";
import { EmptyState } from "../../parts/states";

export default function Screen() {
  return (
    <Page title="Account">
      <EmptyState icon="user" title="Account">
        This screen is not built yet.
      </EmptyState>
    </Page>
  );
}
