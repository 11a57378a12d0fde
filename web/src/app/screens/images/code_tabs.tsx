/** The address in the languages of those who use it, and what browsers get for it. */
import { useEffect, useState } from "preact/hooks";
import { asApiError } from "../../api/error";
import { Button, ButtonLink } from "../../parts/button";
import { CopyField } from "../../parts/copy";
import { formatBytes } from "../../parts/format";
import { Section } from "../../parts/page";
import { Segmented } from "../../parts/tabs";
import { href } from "../../router";
import { type Built, codeOf, type Language, languagesOf } from "./code";
import { BROWSER, deliver } from "./delivered";
import { words } from "./words";

export function Code({ built, path }: { built: Built; path: string }) {
  const [chosen, setChosen] = useState<Language>("url");
  const languages = languagesOf(built);
  const language = languages.includes(chosen) ? chosen : "url";
  const label = (name: Language) => (name === "srcset" && built.preset ? words.code.image : words.code[name]);
  return (
    <Section
      title={words.code.title}
      class="builder-code"
      actions={
        <ButtonLink
          small
          look="quiet"
          href={href("/images/statistics", { purge: `asset:${built.place.file}` })}
        >
          {words.code.purge}
        </ButtonLink>
      }
    >
      <Segmented
        label={words.code.label}
        value={language}
        choices={languages.map((name) => ({ value: name, label: label(name) }))}
        onChange={setChosen}
      />
      <CopyField
        label={label(language)}
        hiddenLabel
        value={codeOf(built, language)}
        code={language !== "url"}
      />
      {built.preset && !built.isText && <p class="soft small">{words.code.onePreset}</p>}
      <Accept format={built.preset ? undefined : built.values.format || "auto"} path={path} />
    </Section>
  );
}

const ACCEPTS = [BROWSER, "image/webp,image/*,*/*;q=0.8", "image/*,*/*;q=0.8"];

/** What each Accept gets, in a sentence; and in numbers, on request, since each of them is a delivery. */
function Accept({ format, path }: { format: string | undefined; path: string }) {
  const [answers, setAnswers] = useState<string[]>();
  useEffect(() => setAnswers(undefined), [path]);
  const ask = async () => {
    const { signal } = new AbortController();
    const asked = ACCEPTS.map(async (accept) => {
      const [{ type, bytes }] = await deliver(path, accept, signal);
      return `${type}, ${formatBytes(bytes)}`;
    });
    const ended = await Promise.allSettled(asked);
    setAnswers(ended.map((end) => (end.status === "fulfilled" ? end.value : asApiError(end.reason).message)));
  };
  return (
    <div class="stack">
      <h3>{words.accept.title}</h3>
      {format !== undefined && (
        <p class="small">
          {format === "auto" ? words.accept.auto : words.accept.named(format.toUpperCase())}
        </p>
      )}
      {answers ? (
        <dl class="facts builder-accepts">
          {ACCEPTS.map((accept, i) => (
            <>
              <dt key={accept}>
                <code>{accept.split(",*/*")[0]}</code>
              </dt>
              <dd class="numeric">{answers[i]}</dd>
            </>
          ))}
        </dl>
      ) : (
        (format !== undefined && format !== "auto") || (
          <div class="actions">
            <Button small action={ask}>
              {words.accept.ask}
            </Button>
          </div>
        )
      )}
    </div>
  );
}
