/** Results of a run: shown, downloaded, opened among the files. */
import { useState } from "preact/hooks";
import { address, onThisOrigin } from "../../api/base";
import { ButtonLink } from "../../parts/button";
import { formatPercent } from "../../parts/format";
import { Icon } from "../../parts/icon";
import { Bytes, Name } from "../../parts/values";
import { hasEnded, type Run, type RunOutput } from "../shared/workflow_types";
import { words } from "./words";

export function Outputs({ run }: { run: Run }) {
  if (run.outputs.length === 0)
    return <p class="soft">{hasEnded(run) ? words.noOutputs : words.noOutputsYet}</p>;
  return (
    <ul class="rows">
      {run.outputs.map((output) => (
        <li key={output.storedFileId ?? output.filename}>
          <Preview output={output} />
          <span class="grow">
            <Name>{output.filename}</Name>
            <span class="soft small run-output-facts">
              <Bytes value={output.sizeBytes} />
              {output.width && output.height && ` · ${output.width} × ${output.height}`}
              {run.inputSize > 0 && ` · ${words.smaller(formatPercent(output.sizeBytes / run.inputSize))}`}
            </span>
          </span>
          {output.downloadUrl ? (
            <ButtonLink
              small
              icon="download"
              href={onThisOrigin(output.downloadUrl)}
              download={output.filename}
            >
              {words.download}
            </ButtonLink>
          ) : (
            <span class="soft small">{words.linkOver}</span>
          )}
        </li>
      ))}
    </ul>
  );
}

function Preview({ output }: { output: RunOutput }) {
  const [isBroken, setBroken] = useState(false);
  if (!output.storedFileId || isBroken) return <Icon name="file" />;
  return (
    <img
      class="run-output-image"
      src={address(`/api/files/${output.storedFileId}/preview`, { w: 320 })}
      alt=""
      onError={() => setBroken(true)}
    />
  );
}
