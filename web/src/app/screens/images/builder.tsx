/** The builder of addresses: a file, a key, parameters or a preset; the image and the code that come of them. */
import { useEffect, useState } from "preact/hooks";
import { serviceUrl } from "../../api/base";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { Select } from "../../parts/form";
import { Section } from "../../parts/page";
import { Callout, EmptyState, Loaded, Skeleton } from "../../parts/states";
import { Segmented } from "../../parts/tabs";
import { Name } from "../../parts/values";
import { toast } from "../../shell/toasts";
import { baseOf, partOf, pathOf, presetOf, problemOf, queryOf, valuesOfPreset } from "./address";
import { Code } from "./code_tabs";
import { Panels } from "./controls";
import { useDelivered } from "./delivered";
import { changeDraft, draft, readQuery, setValue, writeQuery } from "./draft";
import { deliveryKeys } from "./keys";
import { Preview, type Sides } from "./preview";
import { Source } from "./source";
import type { Catalogue, DeliveryKey, Preset, StoredFile } from "./types";
import { words } from "./words";

/** What is drawn from; the file comes by itself. */
interface Tables {
  catalogue: Catalogue;
  keys: DeliveryKey[];
  presets: Preset[];
}

export function Builder() {
  useEffect(readQuery, []);
  const tables = useResource<Tables>(
    async (signal) => {
      const [catalogue, keys, { presets }] = await Promise.all([
        api.get<Catalogue>("/api/catalogue", { signal }),
        deliveryKeys(signal),
        api.get<{ presets: Preset[] }>("/api/cdn-presets", { signal }),
      ]);
      return { catalogue, keys, presets };
    },
    [],
    { on: ["delivery_key", "preset"] },
  );
  return (
    <Loaded of={tables} skeleton={<Skeleton rows={2} height={220} />}>
      {(data) => (
        <Bench
          {...data}
          reload={tables.reload}
          addKey={(key) => tables.set((now) => now && { ...now, keys: [key, ...now.keys] })}
        />
      )}
    </Loaded>
  );
}

interface BenchProps extends Tables {
  reload: () => void;
  addKey: (key: DeliveryKey) => void;
}

function Bench({ catalogue, keys, presets, reload, addKey }: BenchProps) {
  const { file: fileId, key: keyId, values, preset: presetName } = draft.value;
  const parameters = catalogue.cdnParameters;
  const [sides, setSides] = useState<Sides>();
  const file = useResource(
    async (signal) => (await api.get<{ file: StoredFile }>(`/api/files/${fileId}`, { signal })).file,
    [fileId],
    { on: ["file"], id: fileId, when: fileId !== "" },
  );
  const usage = useResource(
    (signal) => api.get<{ deliveries: { used: number; limit: number | null } }>("/api/usage", { signal }),
    [],
    { on: ["usage"] },
  );
  const key = keys.find(({ id }) => id === keyId);
  // Without a choice the first key that can be shown, and takes parameters.
  const usable = keys.filter((known) => partOf(known));
  const first = (usable.find((known) => !known.presets_only) ?? usable[0])?.id;
  useEffect(() => {
    if (!key && first) changeDraft({ key: first });
  }, [key, first]);
  useEffect(() => {
    const timer = setTimeout(writeQuery, 300);
    return () => clearTimeout(timer);
  }, [draft.value]);

  const isByPreset = Boolean(key?.presets_only || presetName);
  const preset = presets.find(({ name }) => name === presetName) ?? (isByPreset ? presets[0] : undefined);
  const part = key && partOf(key);
  const query = queryOf(values, parameters);
  const isWrong = !isByPreset && parameters.some((known) => problemOf(known, values[known.name]));
  const isReady = part && file.data && !isWrong && (!isByPreset || preset);
  const path = isReady
    ? pathOf({ key: part, file: fileId }, isByPreset ? { preset: preset?.name ?? "" } : { query })
    : undefined;
  const delivered = useDelivered(path);
  useEffect(() => {
    if (!delivered.data?.url) setSides(undefined);
  }, [delivered.data?.url]);
  const note = isWrong ? words.preview.wrong : path ? undefined : words.preview.nothing;
  const dpr = isByPreset ? 1 : Number(values.dpr) || 1;
  const pointParameter = parameters.find(({ input }) => input === "point")?.name;

  return (
    <div class="builder">
      <Source file={file} keys={keys} addKey={addKey} month={usage.data?.deliveries} />
      <div class="builder-result">
        {!fileId && <Teaches />}
        {fileId && (
          <Preview
            file={file.data}
            of={delivered}
            note={note}
            point={(!isByPreset && pointParameter && values[pointParameter]) || ""}
            onPoint={isByPreset || !pointParameter ? undefined : (value) => setValue(pointParameter, value)}
            sides={sides}
            setSides={setSides}
          />
        )}
        {path && part && file.data && (
          <Code
            path={path}
            built={{
              place: {
                base: baseOf(file.data.download_url, serviceUrl()),
                key: part,
                file: fileId,
              },
              values,
              preset: isByPreset ? preset?.name : undefined,
              catalogue,
              source: { width: file.data.width, hasAlpha: file.data.media?.hasAlpha ?? false },
              result: sides && {
                width: Math.round(sides.width / dpr),
                height: Math.round(sides.height / dpr),
              },
              alt: file.data.description ?? "",
              isText: delivered.data?.text !== undefined,
            }}
          />
        )}
      </div>
      {(fileId || draft.value.edit) && (
        <div class="stack builder-values">
          {presets.some(({ id }) => id === draft.value.edit) && (
            <Editing {...{ catalogue, presets, reload }} />
          )}
          <Section
            title={isByPreset ? words.preset.label : words.by.values}
            actions={
              presets.length > 0 &&
              !key?.presets_only && (
                <Segmented
                  label={words.by.label}
                  value={isByPreset ? "preset" : "values"}
                  choices={[
                    { value: "values", label: words.by.values },
                    { value: "preset", label: words.by.preset },
                  ]}
                  onChange={(by) => changeDraft({ preset: by === "preset" ? (presets[0]?.name ?? "") : "" })}
                />
              )
            }
          >
            {isByPreset ? (
              <ByPreset
                preset={preset}
                presets={presets}
                catalogue={catalogue}
                isOnly={key?.presets_only ?? false}
              />
            ) : (
              <>
                <Panels parameters={parameters} values={values} onChange={setValue} />
                <div class="actions">
                  {can("write") && !draft.value.edit && (
                    <Button
                      icon="plus"
                      onClick={async () => {
                        const { savePreset } = await import("./save_preset");
                        savePreset(presetOf(values, parameters), reload);
                      }}
                    >
                      {words.preset.asPreset}
                    </Button>
                  )}
                  {query && (
                    <Button look="quiet" onClick={() => changeDraft({ values: {} })}>
                      {words.reset}
                    </Button>
                  )}
                </div>
              </>
            )}
          </Section>
        </div>
      )}
    </div>
  );
}

/** In place of the image before there is one. */
function Teaches() {
  return (
    <div class="card">
      <EmptyState
        icon="images"
        title={words.empty.title}
        curl={`curl -s '${serviceUrl()}/api/files' \\\n  -H "Authorization: Bearer $KEY" -F file=@photo.jpg`}
        guide={{ href: "/guides/images", label: words.preset.guide }}
      >
        {words.empty.body}
      </EmptyState>
    </div>
  );
}

interface ByPresetProps {
  preset: Preset | undefined;
  presets: Preset[];
  catalogue: Catalogue;
  isOnly: boolean;
}

function ByPreset({ preset, presets, catalogue, isOnly }: ByPresetProps) {
  if (!preset)
    return (
      <Callout title={words.preset.none}>
        {isOnly && <p>{words.key.onlyPresets}</p>}
        <p>{words.preset.noneBody}</p>
      </Callout>
    );
  return (
    <>
      {isOnly && <p class="soft small">{words.key.onlyPresets}</p>}
      <Select
        label={words.preset.choose}
        name="preset"
        value={preset.name}
        choices={presets.map(({ name }) => ({ value: name, label: name }))}
        onChange={(event) => changeDraft({ preset: event.currentTarget.value })}
      />
      <code class="builder-params">
        {queryOf(valuesOfPreset(preset.params), catalogue.cdnParameters).replaceAll("&", " ")}
      </code>
      {!isOnly && can("write") && (
        <div class="actions">
          <Button
            small
            icon="edit"
            onClick={() =>
              changeDraft({ preset: "", edit: preset.id, values: valuesOfPreset(preset.params) })
            }
          >
            {words.preset.takeOver}
          </Button>
        </div>
      )}
    </>
  );
}

/** Above the parameters while they are those of a preset. */
function Editing({ catalogue, presets, reload }: Omit<Tables, "keys"> & { reload: () => void }) {
  const { edit, values } = draft.value;
  const preset = presets.find(({ id }) => id === edit);
  if (!preset || !can("write")) return null;
  const save = async () => {
    await api.patch(`/api/cdn-presets/${preset.id}`, { params: presetOf(values, catalogue.cdnParameters) });
    toast(words.preset.saved(preset.name));
    changeDraft({ edit: "" });
    reload();
  };
  return (
    <Callout title={<Name>{words.preset.editing(preset.name)}</Name>}>
      <p class="small">{words.preset.same}</p>
      <div class="actions">
        <Button small look="solid" action={save}>
          {words.preset.save}
        </Button>
        <Button small onClick={() => changeDraft({ edit: "" })}>
          {words.preset.stop}
        </Button>
      </div>
    </Callout>
  );
}
