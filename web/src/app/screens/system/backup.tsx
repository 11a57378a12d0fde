/** The last backup, and the commands that make and restore one. */
import { CopyField } from "../../parts/copy";
import { Section } from "../../parts/page";
import { Callout, Loaded, Skeleton } from "../../parts/states";
import { Ago, Time } from "../../parts/values";
import { href } from "../../router";
import { isOldBackup, quoted } from "./model";
import { useSystem } from "./use_system";
import { words as all } from "./words";

const words = all.backup;
const EXAMPLE = "/var/backups/sluice";

/** What takes the place of a backup where the rows are on a server. */
function Dump({ hasObjects }: { hasObjects: boolean }) {
  return (
    <Section title={words.dump}>
      <p class="soft">{words.dumpNote}</p>
      {hasObjects && <Bucket />}
      <Guide />
    </Section>
  );
}

/** What has to be copied beside the rows. */
function Bucket() {
  return (
    <Callout tone="warn" title={words.bucket}>
      <p>{words.bucketNote}</p>
    </Callout>
  );
}

function Guide() {
  return (
    <p>
      <a href={href("/guides/cluster")}>{words.guide}</a>
    </p>
  );
}

export function Backup() {
  const system = useSystem();
  return (
    <Loaded of={system} skeleton={<Skeleton rows={4} height={72} />}>
      {({ database: { engine, lastBackupAt, lastBackupFolder }, objects }) => {
        const hasObjects = Boolean(objects);
        if (engine === "postgresql") return <Dump hasObjects={hasObjects} />;
        const folder = quoted(lastBackupFolder ?? EXAMPLE);
        return (
          <div class="stack system-stack">
            <Section title={words.last}>
              {lastBackupAt ? (
                <>
                  {isOldBackup(lastBackupAt, Date.now()) && <Callout tone="warn" title={words.stale} />}
                  <dl class="facts">
                    <dt>{words.at}</dt>
                    <dd>
                      <Time at={lastBackupAt} />{" "}
                      <span class="soft">
                        (<Ago at={lastBackupAt} />)
                      </span>
                    </dd>
                    <dt>{words.folder}</dt>
                    <dd>
                      <code class="system-path">{lastBackupFolder}</code>
                    </dd>
                  </dl>
                </>
              ) : (
                <Callout tone="warn" title={words.never}>
                  <p>{words.neverNote}</p>
                </Callout>
              )}
            </Section>
            <Section title={words.command}>
              <p class="soft">{words.commandNote}</p>
              {hasObjects && (
                <>
                  <Bucket />
                  <Guide />
                </>
              )}
              <CopyField label={words.command} value={`sluice backup ${folder}`} code />
              <CopyField label={words.verify} value={`sluice backup ${folder} --verify`} code />
            </Section>
            <Section title={words.restore}>
              <p class="soft">{words.restoreNote}</p>
              <CopyField label={words.restore} value={`sluice restore ${folder}`} code />
            </Section>
          </div>
        );
      }}
    </Loaded>
  );
}
