/** The settings in force with the source of each value. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { Switch, TextField } from "../../parts/form";
import { Badge, Loaded, Skeleton } from "../../parts/states";
import { foundSettings, shownValue } from "./model";
import type { Settings as All, Setting } from "./types";
import { words as all } from "./words";

const words = all.settings;

export function Settings() {
  const settings = useResource((signal) => api.get<All>("/api/system/settings", { signal }), []);
  const [text, setText] = useState("");
  const [onlyChanged, setOnlyChanged] = useState(false);
  return (
    <div class="stack system-stack">
      <div class="toolbar" role="search" aria-label={all.tabs.settings}>
        <TextField
          label={words.find}
          hiddenLabel
          type="search"
          name="find"
          placeholder={words.find}
          value={text}
          maxLength={200}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <Switch label={words.changed} checked={onlyChanged} onChange={setOnlyChanged} />
      </div>
      <Loaded of={settings} skeleton={<Skeleton rows={10} height={32} />}>
        {(data) => (
          <>
            <p class="soft small">
              {data.file ? (
                <>
                  {words.file}: <code class="system-path">{data.file}</code>.{" "}
                </>
              ) : (
                `${words.noFile} `
              )}
              {words.note}
            </p>
            <Table of={foundSettings(data.settings, text, onlyChanged)} hasText={text.trim() !== ""} />
          </>
        )}
      </Loaded>
    </div>
  );
}

function Table({ of, hasText }: { of: Setting[]; hasText: boolean }) {
  if (of.length === 0) return <p class="soft">{hasText ? words.nothing : words.none}</p>;
  return (
    <div class="card">
      <table class="table table-dense table-cards">
        <thead>
          <tr>
            <th scope="col">{words.key}</th>
            <th scope="col">{words.value}</th>
            <th scope="col">{words.source}</th>
          </tr>
        </thead>
        <tbody>
          {of.map((setting) => (
            <Row key={setting.key} setting={setting} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ setting: { key, value, source, variable } }: { setting: Setting }) {
  const text = shownValue(value);
  return (
    <tr>
      <th scope="row">
        <code>{key}</code>
      </th>
      <td data-label={words.value}>
        {text ? <code class="system-path">{text}</code> : <span class="soft">{words.empty}</span>}
      </td>
      <td data-label={words.source}>
        {source === "default" ? (
          <span class="soft">{words.sources.default}</span>
        ) : (
          <Badge tone="info">{words.sources[source] ?? source}</Badge>
        )}
        {variable && <code class="system-variable">{variable}</code>}
      </td>
    </tr>
  );
}
