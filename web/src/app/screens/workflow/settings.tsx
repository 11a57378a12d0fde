/** Settings of a workflow: its name, whether it is active, the folder that starts it, its secret. */
import { api } from "../../api/client";
import { ApiError } from "../../api/error";
import { useResource } from "../../api/resource";
import { can } from "../../api/session";
import { Button, ButtonLink, Submit } from "../../parts/button";
import { ask } from "../../parts/dialog";
import { Form, Switch, TextField } from "../../parts/form";
import { Section } from "../../parts/page";
import { Loaded, Skeleton } from "../../parts/states";
import { Name } from "../../parts/values";
import { go, href } from "../../router";
import { toast } from "../../shell/toasts";
import { type ChosenFolder, chooseFolder, folderPath } from "../shared/choose_folder";
import { readFlow } from "../shared/flow";
import { LONGEST_NAME, posts, remove, setActive, showWorkflowSecret } from "../shared/workflow_acts";
import type { Definition, Workflow } from "../shared/workflow_types";
import type { PartProps } from ".";
import { words as all } from "./words";

const words = all.settings;

export function Settings(props: PartProps) {
  if (!can("write")) return <p class="soft">{words.viewer}</p>;
  return (
    <div class="columns">
      <NameAndState {...props} />
      <Trigger {...props} />
      <Secret {...props} />
      <Section title={words.danger}>
        <p class="soft small">{words.dangerLead}</p>
        <div class="actions">
          <Button
            look="danger"
            icon="trash"
            onClick={async () => (await remove(props.workflow)) && go("/workflows", { replace: true })}
          >
            {words.danger}
          </Button>
        </div>
      </Section>
    </div>
  );
}

/** Saves a change over the version that is shown; another user's save in between is loaded first. */
async function save({ workflow, of }: PartProps, change: { name?: string; definition?: Definition }) {
  try {
    const body = { id: workflow.id, version: workflow.version, ...change };
    of.set((await api.post<{ workflow: Workflow }>("/api/workflows", body)).workflow);
  } catch (thrown) {
    if (!(thrown instanceof ApiError) || thrown.status !== 409) throw thrown;
    of.reload();
    throw new ApiError(409, `${words.staleTitle}. ${words.stale}`);
  }
}

function NameAndState(props: PartProps) {
  const { workflow, of } = props;
  return (
    <Section title={words.name}>
      <Form
        action={async (values) => {
          await save(props, { name: String(values.get("name")).trim() });
          toast(words.saved, "good");
        }}
      >
        <TextField
          key={workflow.name}
          label={words.nameLabel}
          name="name"
          defaultValue={workflow.name}
          maxLength={LONGEST_NAME}
          required
        />
        <div class="actions">
          <Submit look="plain">{words.save}</Submit>
        </div>
      </Form>
      <Switch
        label={words.active}
        hint={words.activeHint}
        checked={workflow.isActive}
        onChange={(isActive) =>
          setActive(workflow, isActive).then(of.set, (thrown: Error) => toast(thrown.message, "bad"))
        }
      />
    </Section>
  );
}

function Trigger(props: PartProps) {
  const { definition } = props.workflow;
  const folderId = readFlow("", definition).triggerFolder;
  const folder = useResource(
    async (signal) =>
      (await api.get<{ folder: ChosenFolder }>(`/api/folders/${folderId}`, { signal })).folder,
    [folderId],
    { when: Boolean(folderId), on: ["folder"] },
  );
  const choose = async () => {
    const chosen = await chooseFolder();
    if (!chosen) return;
    try {
      await save(props, { definition: { ...definition, trigger: { folderId: chosen.id } } });
      toast(words.triggered(chosen.name), "good");
    } catch (thrown) {
      toast((thrown as Error).message, "bad");
    }
  };
  const clear = async () => {
    const { trigger: _, ...rest } = definition;
    await save(props, { definition: rest as Definition });
    toast(words.untriggered, "good");
  };
  return (
    <Section title={words.trigger}>
      <p class="soft small">{words.triggerLead}</p>
      {folderId ? (
        folder.error?.status === 404 ? (
          <p>{words.gone}</p>
        ) : (
          <Loaded of={folder} skeleton={<Skeleton rows={1} height={24} />}>
            {(found) => (
              <p>
                <Name>{folderPath(found)}</Name>
              </p>
            )}
          </Loaded>
        )
      ) : (
        <p>{words.noTrigger}</p>
      )}
      <div class="actions">
        <Button icon="files" onClick={choose}>
          {folderId ? words.other : words.choose}
        </Button>
        {folderId && <Button action={clear}>{words.clear}</Button>}
        {folderId && folder.data && (
          <ButtonLink look="quiet" href={href(`/files/${folderId}`)}>
            {words.openFolder}
          </ButtonLink>
        )}
      </div>
    </Section>
  );
}

function Secret({ workflow }: PartProps) {
  const rotate = async () => {
    let secret: string | null | undefined;
    await ask({
      title: words.rotateTitle,
      body: words.rotateBody,
      verb: words.rotate,
      danger: false,
      action: async () => {
        const path = `/api/workflows/${workflow.id}/rotate-secret`;
        secret = (await api.post<{ workflow: Workflow }>(path)).workflow.webhookSecret;
      },
    });
    if (secret) await showWorkflowSecret(secret);
  };
  return (
    <Section title={words.secret}>
      <p class="soft small">{words.secretLead}</p>
      {!posts(workflow.definition) && <p class="small">{words.secretUnused}</p>}
      <div class="actions">
        <Button icon="key" onClick={rotate}>
          {words.newSecret}
        </Button>
      </div>
    </Section>
  );
}
