import { Page } from "../../parts/page";
import { EmptyState } from "../../parts/states";

export default function Screen() {
  return (
    <Page title="Webhooks">
      <EmptyState icon="webhooks" title="Webhooks">
        This screen is not built yet.
      </EmptyState>
    </Page>
  );
}
