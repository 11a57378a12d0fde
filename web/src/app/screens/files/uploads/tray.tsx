/** What the tray shows of uploads: how far all of them are, what failed and why. */
import { useRef, useState } from "preact/hooks";
import { offlineSince } from "../../../api/connection";
import { Button } from "../../../parts/button";
import { ask } from "../../../parts/dialog";
import { formatPercent } from "../../../parts/format";
import { Icon } from "../../../parts/icon";
import {
  addChosen,
  all,
  beat,
  cancel,
  cancelAll,
  close,
  retry,
  retryFailed,
  type Summary,
  summary,
  type Upload,
} from "./queue";
import { words } from "./words";

/** So many lines are in the page at most. */
const SHOWN = 40;

export function UploadTray() {
  const [isOpen, setOpen] = useState(false);
  const again = useRef<HTMLInputElement>(null);
  beat.value;
  const sum = summary();
  const { files, failed, lost, isBusy } = sum;
  const shown = isOpen ? lines(all()) : [];
  const left = files - sum.ended - shown.length;
  const firstError = all().find(({ state }) => state === "failed")?.error?.message;
  return (
    <section class="uploads" aria-label={words.title}>
      <header class="uploads-head">
        <strong>{headline(sum)}</strong>
        <Button
          look="quiet"
          small
          icon={isOpen ? "down" : "up"}
          label={isOpen ? words.hide : words.show}
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        />
        {isBusy ? (
          <Button look="quiet" small icon="close" label={words.cancelAll} onClick={() => askCancel(sum)} />
        ) : (
          <Button
            look="quiet"
            small
            icon="close"
            label={words.close}
            onClick={lost > 0 ? cancelAll : close}
          />
        )}
      </header>
      {isBusy && (
        <progress
          aria-label={words.title}
          max={Math.max(1, sum.bytes)}
          value={sum.sent || (sum.bytes ? 0 : sum.ended)}
        />
      )}
      <p class="soft small numeric">{detail(sum)}</p>
      {firstError && !isOpen && <p class="uploads-error small">{firstError}</p>}
      {lost > 0 && <p class="small">{words.lostNote}</p>}
      {(failed > 0 || lost > 0) && (
        <div class="actions">
          {failed > 0 && (
            <Button small icon="reload" onClick={retryFailed}>
              {words.retryAll}
            </Button>
          )}
          {lost > 0 && (
            <Button small onClick={() => again.current?.click()}>
              {words.chooseLost}
            </Button>
          )}
        </div>
      )}
      <input
        ref={again}
        type="file"
        multiple
        hidden
        data-pick="again"
        aria-label={words.chooseLost}
        onChange={(event) => {
          const chosen = [...(event.currentTarget.files ?? [])];
          event.currentTarget.value = "";
          addChosen(chosen, null);
        }}
      />
      {shown.length > 0 && (
        <ul class="uploads-list">
          {shown.map((upload) => (
            <Line key={upload.key} upload={upload} />
          ))}
          {left > 0 && <li class="soft">{words.more(left)}</li>}
        </ul>
      )}
    </section>
  );
}

function headline({ files, ended, failed, lost, isBusy }: Summary): string {
  if (isBusy) return words.progress(ended, files);
  if (failed > 0) return words.someFailed(failed);
  if (lost > 0) return words.cut(lost);
  return words.ended(ended);
}

function detail({ sent, bytes, left, present, isBusy, pausedUntil, ended, failed }: Summary): string {
  const parts = [words.amount(sent, bytes)];
  if (isBusy && offlineSince.value) parts.push(words.offline);
  else if (isBusy && pausedUntil > Date.now()) parts.push(words.paused);
  else if (isBusy && left !== null) parts.push(words.left(left));
  if (present > 0) parts.push(words.present(present));
  if (isBusy && failed > 0) parts.push(words.someFailed(failed));
  if (!isBusy && failed > 0) parts.push(words.ended(ended));
  return parts.join(" · ");
}

/** What needs someone, then what is being sent, then what waits; what has ended is only counted. */
function lines(uploads: readonly Upload[]): Upload[] {
  const order = ["failed", "lost", "sending", "waiting"];
  const picked: Upload[] = [];
  for (const state of order) {
    for (const upload of uploads) {
      if (picked.length >= SHOWN) return picked;
      if (upload.state === state) picked.push(upload);
    }
  }
  return picked;
}

function Line({ upload }: { upload: Upload }) {
  const { name, path, state, size, sent, error } = upload;
  const share = size > 0 ? sent / size : 0;
  return (
    <li data-state={state}>
      <span class="uploads-name">
        <bdi class="one-line" title={[...path, name].join("/")}>
          {name}
        </bdi>
        <span class={state === "failed" ? "uploads-error" : "soft"}>
          {error
            ? error.message
            : state === "sending" && size > 0
              ? formatPercent(share)
              : words.states[state]}
        </span>
      </span>
      {state === "failed" && (
        <Button look="quiet" small icon="reload" label={words.retry(name)} onClick={() => retry(upload)} />
      )}
      {state === "lost" && <Icon name="warn" />}
      <Button look="quiet" small icon="close" label={words.cancel(name)} onClick={() => cancel(upload)} />
    </li>
  );
}

const askCancel = (sum: Summary) =>
  ask({
    title: words.cancelTitle,
    body: words.cancelBody(sum.files - sum.ended),
    verb: words.cancelAll,
    action: async () => cancelAll(),
  });
