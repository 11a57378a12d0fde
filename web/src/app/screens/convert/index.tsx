/** Converting: files in, a tool of the catalogue, before and after. */
import { useEffect, useState } from "preact/hooks";
import { api } from "../../api/client";
import { offlineSince } from "../../api/connection";
import { asApiError } from "../../api/error";
import { useResource } from "../../api/resource";
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { Switch } from "../../parts/form";
import { Page, Section } from "../../parts/page";
import { Loaded, Skeleton } from "../../parts/states";
import { query, setQuery } from "../../router";
import { toast } from "../../shell/toasts";
import { choice, choose } from "./choice";
import { classOf, formatsFor, joins, paramsOf, problemsOf, takes, usualFormat, type Values } from "./fields";
import { ToolChoice, ToolFields } from "./form";
import type { Wanted } from "./request";
import { Results } from "./results";
import { SourceList } from "./source_list";
import type { Catalogue, Source, Tool } from "./types";
import { words } from "./words";
import { addStored, sources, start } from "./work";

export default function Convert() {
  const catalogue = useResource((signal) => api.get<Catalogue>("/api/catalogue", { signal }), []);
  useAskedFiles();
  return (
    <Page title={words.title}>
      <Loaded of={catalogue} skeleton={<Skeleton rows={3} height={120} />}>
        {(data) => <Parts catalogue={data} />}
      </Loaded>
    </Page>
  );
}

/** Takes the stored files that an address names: `?file=ID&file=ID`, and the tool of `?tool=NAME`. */
function useAskedFiles() {
  const asked = query.value.getAll("file").join();
  const tool = query.value.get("tool");
  useEffect(() => {
    if (tool) choose({ tool });
    if (asked)
      Promise.all(
        asked.split(",").map((id) => api.get<{ file: Stored }>(`/api/files/${encodeURIComponent(id)}`)),
      )
        .then((answers) => addStored(answers.map(({ file }) => file)))
        .catch((thrown) => toast(asApiError(thrown).message, "bad"));
    if (asked || tool) setQuery({ file: undefined, tool: undefined });
  }, [asked, tool]);
}

type Stored = Parameters<typeof addStored>[0][number];

function Parts({ catalogue }: { catalogue: Catalogue }) {
  const { tools, formats } = catalogue;
  const tool = tools.find(({ name }) => name === choice.value.tool) ?? tools[0];
  if (!tool) return null;
  return (
    <div class="convert">
      <SourceList tool={tool} formats={formats} />
      <What tool={tool} catalogue={catalogue} />
      <Results />
    </div>
  );
}

/** The values of a tool, with a format where one is needed and none fits that was chosen before. */
function valuesFor(tool: Tool, catalogue: Catalogue, classes: Set<string>): Values {
  const chosen = choice.value.values[tool.name] ?? {};
  const format = tool.fields.find(({ name }) => name === "format");
  if (tool.name !== "convert" || !format) return chosen;
  const offered = formatsFor(format, classes, catalogue.formats);
  if (chosen.format && offered.includes(chosen.format)) return chosen;
  return { ...chosen, format: usualFormat(classes, offered) };
}

function What({ tool, catalogue }: { tool: Tool; catalogue: Catalogue }) {
  const [own, setOwn] = useState<File>();
  const [isShown, setShown] = useState(false);
  const list = sources.value;
  const fitting = list.filter((source) => takes(tool, source, catalogue.formats));
  const classes = new Set(fitting.flatMap((source) => classOf(source, catalogue.formats) ?? []));
  const values = valuesFor(tool, catalogue, classes);
  const hasOwn = tool.fields.some(({ input }) => input === "file");
  const problems = problemsOf(tool, values, catalogue, own !== undefined);
  const set = (name: string, value: string) =>
    choose({ values: { ...choice.peek().values, [tool.name]: { ...values, [name]: value } } }, tool);
  const wanted: Wanted = {
    tool,
    params: paramsOf(tool, values, catalogue.resizePresets),
    own: hasOwn && own ? { field: "watermarkFile", file: own } : undefined,
    store: choice.value.store,
  };
  const begin = () => {
    setShown(true);
    if (Object.keys(problems).length > 0) {
      requestAnimationFrame(() =>
        document.querySelector<HTMLElement>(".convert-tool [aria-invalid]")?.focus(),
      );
      return;
    }
    if (label.isReady) start(wanted, fitting);
  };
  const label = startLabel(tool, list, fitting);
  // What is missing is said at the first try, what is wrong at once
  const named = isShown
    ? problems
    : Object.fromEntries(Object.entries(problems).filter(([name]) => values[name]));
  return (
    <Section
      title={words.tool.title}
      class="convert-tool"
      actions={
        Object.keys(choice.value.values[tool.name] ?? {}).length > 0 && (
          <Button
            small
            look="quiet"
            onClick={() => choose({ values: { ...choice.peek().values, [tool.name]: {} } }, tool)}
          >
            {words.tool.reset}
          </Button>
        )
      }
    >
      <ToolChoice
        catalogue={catalogue}
        sources={list}
        tool={tool}
        onChange={(name) => {
          setShown(false);
          choose({ tool: name });
        }}
      />
      <ToolFields
        tool={tool}
        values={values}
        catalogue={catalogue}
        classes={classes}
        problems={named}
        onChange={set}
        own={own}
        setOwn={setOwn}
      />
      {tool.name !== "inspect" && (
        <Switch
          label={words.tool.save}
          hint={
            !choice.value.store && list.some(({ stored }) => stored) ? words.tool.beside : words.tool.saveHint
          }
          checked={choice.value.store}
          onChange={(isStored) => choose({ store: isStored })}
        />
      )}
      <div class="actions convert-start">
        {can("write") && (
          <Button
            look="solid"
            icon="convert"
            disabled={!label.isReady || offlineSince.value !== null}
            onClick={begin}
          >
            {label.text}
          </Button>
        )}
        <Button
          look="quiet"
          icon="terminal"
          onClick={() => import("./curl").then(({ showAsCurl }) => showAsCurl(wanted, fitting))}
        >
          {words.tool.curl}
        </Button>
      </div>
      {!can("write") && <p class="soft small">{words.viewer}</p>}
    </Section>
  );
}

function startLabel(tool: Tool, all: Source[], fitting: Source[]) {
  const texts = words.tool.start;
  if (all.length === 0) return { text: texts.none, isReady: false };
  if (fitting.length === 0) return { text: texts.unfit, isReady: false };
  if (fitting.length < tool.minFiles) return { text: texts.few(tool.minFiles), isReady: false };
  return { text: joins(tool) ? texts.join(fitting.length) : texts.each(fitting.length), isReady: true };
}
