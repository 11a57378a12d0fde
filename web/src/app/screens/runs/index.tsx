/** The runs of all workflows. */

import { ButtonLink } from "../../parts/button";
import { Page } from "../../parts/page";
import { href } from "../../router";
import type { ScreenProps } from "../../routes";
import { RunList } from "../shared/run_list";
import { WorkflowTabs } from "../shared/workflow_tabs";

/** The texts of the screen. */
const words = {
  title: "Runs",
  emptyTitle: "Nothing has run yet",
  empty:
    "Each file that a workflow processes is a run, with a log of its steps. All of them are listed here.",
  open: "Open the workflows",
};

export default function Runs(_: ScreenProps) {
  return (
    <Page title={words.title}>
      <WorkflowTabs current="runs" />
      <RunList
        empty={{
          title: words.emptyTitle,
          text: words.empty,
          action: (
            <ButtonLink look="solid" href={href("/workflows")}>
              {words.open}
            </ButtonLink>
          ),
        }}
      />
    </Page>
  );
}
