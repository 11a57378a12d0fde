/** A job with its results, for which there is no screen. */
import { onThisOrigin } from "../../api/base";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { ButtonLink } from "../../parts/button";
import { Dialog, openDialog } from "../../parts/dialog";
import { formatBytes, formatDuration } from "../../parts/format";
import { Loaded, Skeleton } from "../../parts/states";
import { Name, Time } from "../../parts/values";
import { href } from "../../router";
import { EntryState } from "../shared/activity/entry_parts";
import { jobEntry } from "../shared/activity/sources";
import type { Job } from "../shared/activity/types";
import { words } from "./words";

export interface JobDetail extends Job {
  completedAt: string | null;
  startedAt: string | null;
  archive: { downloadUrl: string } | null;
  results:
    | {
        filename: string;
        originalSize: number;
        finalSize: number | null;
        downloadUrl: string | null;
        storedFileId: string | null;
      }[]
    | null;
  errors: { filename: string; error: string }[] | null;
}

export const openJob = (id: string) =>
  openDialog((close) => (
    <Dialog title={words.job.title} onClose={close} wide>
      <JobView id={id} close={close} />
    </Dialog>
  ));

function JobView({ id, close }: { id: string; close: () => void }) {
  const job = useResource((signal) => api.get<JobDetail>(`/api/jobs/${id}`, { signal }), [id], {
    on: ["job"],
    id,
  });
  return (
    <Loaded of={job} skeleton={<Skeleton rows={4} height={40} />}>
      {(data) => (
        <div class="stack">
          <Facts job={data} />
          {data.errorMessage && <p class="field-error">{data.errorMessage}</p>}
          {(data.errors ?? []).length > 0 && <Errors job={data} />}
          <Results job={data} close={close} />
        </div>
      )}
    </Loaded>
  );
}

function Facts({ job }: { job: JobDetail }) {
  const entry = jobEntry(job);
  return (
    <dl class="facts">
      <dt>{entry.title}</dt>
      <dd>
        <EntryState entry={entry} />
      </dd>
      <dt>{words.job.made}</dt>
      <dd>
        <Time at={job.createdAt} exact />
      </dd>
      {job.startedAt && job.completedAt && (
        <>
          <dt>{words.job.took}</dt>
          <dd class="numeric">{formatDuration(Date.parse(job.completedAt) - Date.parse(job.startedAt))}</dd>
        </>
      )}
    </dl>
  );
}

function Errors({ job }: { job: JobDetail }) {
  return (
    <>
      <h3>{words.job.errors}</h3>
      <ul class="rows small">
        {(job.errors ?? []).map(({ filename, error }, i) => (
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

function Results({ job, close }: { job: JobDetail; close: () => void }) {
  const results = job.results ?? [];
  const isActive = job.status === "pending" || job.status === "processing";
  if (results.length === 0) return <p class="soft">{isActive ? words.job.noResults : words.job.none}</p>;
  return (
    <>
      <h3>{words.job.results}</h3>
      <ul class="rows">
        {results.map((result, i) => (
          // The files of a job keep their places
          <li key={i}>
            <span class="grow">
              <Name class="one-line">{result.filename}</Name>
              {result.finalSize !== null && (
                <span class="soft small numeric">
                  {words.job.saved(formatBytes(result.originalSize), formatBytes(result.finalSize))}
                </span>
              )}
            </span>
            <span class="actions">
              {result.storedFileId && (
                // biome-ignore lint/a11y/useKeyWithClickEvents: a link inside is activated by its own keys, which click
                // biome-ignore lint/a11y/noStaticElementInteractions: it only closes after a link was followed
                <span onClick={close}>
                  <ButtonLink small href={href("/files", { file: result.storedFileId })}>
                    {words.open}
                  </ButtonLink>
                </span>
              )}
              {result.downloadUrl ? (
                <ButtonLink small icon="download" href={onThisOrigin(result.downloadUrl)} download>
                  {words.job.download}
                </ButtonLink>
              ) : (
                !result.storedFileId && <span class="soft small">{words.job.over}</span>
              )}
            </span>
          </li>
        ))}
      </ul>
      {job.archive && (
        <div class="dialog-actions">
          <ButtonLink icon="archive" href={onThisOrigin(job.archive.downloadUrl)} download>
            {words.job.all}
          </ButtonLink>
        </div>
      )}
    </>
  );
}
