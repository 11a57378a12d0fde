import { Page } from "../../parts/page";
import { EmptyState } from "../../parts/states";

export default function Screen() {
  return (
    <Page title="Files">
      <EmptyState icon="files" title="Files">
        This screen is not built yet.
      </EmptyState>
    </Page>
  );
}
