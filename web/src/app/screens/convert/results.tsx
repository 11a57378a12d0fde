/** The list of works: how far each is, what came of it, and what can be done with it. */
import { useState } from "preact/hooks";
import { ApiError } from "../../api/error";
import { can } from "../../api/session";
import { Button, ButtonLink } from "../../parts/button";
import { formatBytes, formatPercent } from "../../parts/format";
import { Section } from "../../parts/page";
import { Badge, Callout, ErrorState } from "../../parts/states";
import { Name, useNow } from "../../parts/values";
import { href } from "../../router";
import { labelOf } from "./fields";
import { Stage } from "./stage";
import type { ResultFile } from "./types";
import { words } from "./words";
import {
  cancel,
  clearEnded,
  dismiss,
  downloadAll,
  isRunning,
  pausedUntil,
  resultUrl,
  store,
  tryAgain,
  type Work,
  works,
} from "./work";

export function Results() {
  const list = works.value;
  const [open, setOpen] = useState<number | null>(null);
  if (list.length === 0) return null;
  const results = list.flatMap((work) => work.results);
  // The only result is looked at without a click
  const single = list.length === 1 ? list[0]?.key : undefined;
  const shown = open ?? single ?? null;
  return (
    <Section
      title={words.results.title}
      class="convert-results"
      actions={
        <>
          {results.length > 1 && (
            <Button small icon="download" action={downloadAll}>
              {words.results.zip}
            </Button>
          )}
          {list.some((work) => !isRunning(work)) && (
            <Button small look="quiet" onClick={clearEnded}>
              {words.results.clear}
            </Button>
          )}
        </>
      }
    >
      <Sum list={list} />
      <Pause />
      <ul class="rows">
        {list.map((work) => (
          <WorkRow
            key={work.key}
            work={work}
            isOpen={shown === work.key}
            toggle={() => setOpen(shown === work.key ? -1 : work.key)}
          />
        ))}
      </ul>
    </Section>
  );
}

/** What all results weigh together against their sources. */
function Sum({ list }: { list: Work[] }) {
  const results = list
    .flatMap((work) => work.results.slice(0, 1))
    .filter(({ finalSize }) => finalSize !== null);
  if (results.length < 2) return null;
  const before = results.reduce((sum, { originalSize }) => sum + originalSize, 0);
  const after = results.reduce((sum, { finalSize }) => sum + (finalSize ?? 0), 0);
  const saved = before - after;
  return (
    <p class="soft small numeric">
      {words.results.done(results.length)}: {formatBytes(before)} → {formatBytes(after)}
      {saved > 0 && `, ${words.results.saved(formatBytes(saved), formatPercent(saved / before))}`}
    </p>
  );
}

function Pause() {
  const now = useNow(1_000);
  const rest = Math.ceil((pausedUntil.value - now) / 1_000);
  if (rest <= 0) return null;
  return <Callout tone="warn">{words.results.pause(rest)}</Callout>;
}

interface RowProps {
  work: Work;
  isOpen: boolean;
  toggle: () => void;
}

function WorkRow({ work, isOpen, toggle }: RowProps) {
  const { key, name, state, results, error, errors = [] } = work;
  const isEnded = !isRunning(work);
  return (
    <li class="convert-work">
      <div class="convert-line">
        <span class="grow convert-names">
          <Name>{name}</Name>
          <span class="soft small">{words.tool.names[work.tool] ?? labelOf(work.tool)}</span>
        </span>
        {isEnded ? (
          <>
            {state === "done" && results.length > 0 && (
              <Button small aria-expanded={isOpen} onClick={toggle}>
                {isOpen ? words.results.hide : words.results.compare}
              </Button>
            )}
            {state !== "done" && can("write") && (
              <Button small icon="reload" onClick={() => tryAgain(key)}>
                {words.results.again}
              </Button>
            )}
            <Button
              small
              look="quiet"
              icon="close"
              label={words.results.dismiss(name)}
              onClick={() => dismiss(key)}
            />
          </>
        ) : (
          <>
            <Progress work={work} />
            <Button
              small
              look="quiet"
              icon="close"
              label={words.results.cancel(name)}
              action={() => cancel(key)}
            />
          </>
        )}
      </div>
      {state === "cancelled" && <p class="soft small">{words.results.cancelled}</p>}
      {state === "failed" && error && (
        <ErrorState error={error instanceof ApiError ? error : new ApiError(422, error.message)} />
      )}
      {results.map((result, i) => (
        // The results of a work keep their places
        <ResultLine key={i} work={work} result={result} isFirst={i === 0} />
      ))}
      {errors.length > 0 && <Failed errors={errors} />}
      {state === "done" && isOpen && <Stage work={work} />}
    </li>
  );
}

function Progress({ work: { name, state, percent, queuePlace } }: { work: Work }) {
  const text =
    state === "waiting"
      ? words.results.waiting
      : state === "sending"
        ? words.results.sending(percent)
        : queuePlace !== null
          ? words.results.queued(queuePlace)
          : words.results.working(percent);
  const isKnown = state !== "waiting" && queuePlace === null;
  return (
    <span class="convert-progress">
      <progress
        aria-label={words.results.progress(name)}
        max={100}
        {...(isKnown ? { value: percent } : {})}
      />
      <span class="soft small numeric">{text}</span>
    </span>
  );
}

/** The files of a work that failed, each with its reason. */
function Failed({ errors }: { errors: { filename: string; error: string }[] }) {
  return (
    <>
      <p class="soft small">{words.results.errors}</p>
      <ul class="rows small" aria-label={words.results.errors}>
        {errors.map(({ filename, error }, i) => (
          // The files of a job keep their places
          <li key={i}>
            <Name class="grow">{filename}</Name>
            <bdi class="field-error">{error}</bdi>
          </li>
        ))}
      </ul>
    </>
  );
}

function ResultLine({ work, result, isFirst }: { work: Work; result: ResultFile; isFirst: boolean }) {
  const url = resultUrl(result);
  const { filename, finalSize, storedFileId, appliedQuality } = result;
  return (
    <div class="convert-result">
      <span class="grow convert-facts small">
        <Name>{filename}</Name>
        {finalSize !== null && (
          <span class="numeric soft">
            {isFirst && !result.facts ? `${formatBytes(result.originalSize)} → ` : ""}
            {formatBytes(finalSize)}
          </span>
        )}
        {isFirst && !result.facts && finalSize !== null && <Saving result={result} />}
        {appliedQuality !== null && <Badge>{words.results.quality(appliedQuality)}</Badge>}
      </span>
      {url && (
        <ButtonLink small href={url} icon="download" download={filename}>
          {words.results.download}
        </ButtonLink>
      )}
      {storedFileId ? (
        <ButtonLink small look="quiet" href={`${href("/files")}?file=${storedFileId}`}>
          {words.results.open}
        </ButtonLink>
      ) : (
        url &&
        !result.facts &&
        can("write") && (
          <Button small look="quiet" icon="files" action={() => store(work.key, result)}>
            {words.results.store}
          </Button>
        )
      )}
    </div>
  );
}

function Saving({ result: { originalSize, finalSize } }: { result: ResultFile }) {
  const share = originalSize > 0 && finalSize !== null ? 1 - finalSize / originalSize : 0;
  if (Math.abs(share) < 0.005) return <Badge>{words.results.same}</Badge>;
  return share > 0 ? (
    <Badge tone="good">{words.results.smaller(formatPercent(share, share > 0.99 ? 1 : 0))}</Badge>
  ) : (
    <Badge tone="warn">{words.results.larger(formatPercent(-share))}</Badge>
  );
}
