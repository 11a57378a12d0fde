/** The screen of an address that leads to nothing. */
import { ButtonLink } from "../../parts/button";
import { Page } from "../../parts/page";
import { EmptyState } from "../../parts/states";
import { href } from "../../router";

export default function NotFound() {
  return (
    <Page title="Not found">
      <EmptyState
        icon="help"
        title="There is no screen at this address"
        action={
          <ButtonLink href={href("/")} look="solid">
            Overview
          </ButtonLink>
        }
      >
        It may have been moved or deleted, or the address is incomplete.
      </EmptyState>
    </Page>
  );
}
