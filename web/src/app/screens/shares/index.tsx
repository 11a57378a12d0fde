/** Every link of the account that is in force. */
import { serviceUrl } from "../../api/base";
import { api } from "../../api/client";
import { usePages } from "../../api/resource";
import { can } from "../../api/session";
import { Button, ButtonLink } from "../../parts/button";
import { CopyButton } from "../../parts/copy";
import { formatNumber } from "../../parts/format";
import { Page } from "../../parts/page";
import { EmptyState, Loaded, Skeleton } from "../../parts/states";
import { Name, Time } from "../../parts/values";
import { href } from "../../router";
import { openShare, revoke, type Share, ShareTerms } from "../shared/share_dialog";
import { shareWords } from "../shared/share_words";
import { words } from "./words";

interface ShareListed extends Share {
  folder: { id: string; name: string; path: { id: string; name: string }[] };
}

interface ShareList {
  shares: ShareListed[];
  nextCursor: string | null;
}

const PAGE = 100;

export default function Shares() {
  const list = usePages<ShareListed>(
    async (cursor, signal) => {
      const query = { limit: PAGE, cursor };
      const { shares, nextCursor } = await api.get<ShareList>("/api/shares", { query, signal });
      return { items: shares, next: nextCursor };
    },
    "shares",
    ["share", "folder"],
  );
  return (
    <Page
      title={words.title}
      crumbs={[{ label: words.files, to: "/files" }]}
      aside={
        list.data && (
          <span class="numeric">{`${formatNumber(list.data.items.length)}${list.data.hasMore ? "+" : ""}`}</span>
        )
      }
    >
      <Loaded of={list} skeleton={<Skeleton rows={5} height={56} />}>
        {({ items: shares, hasMore }) =>
          shares.length === 0 ? (
            <EmptyState
              icon="link"
              title={words.empty.title}
              action={
                <ButtonLink look="solid" href={href("/files")}>
                  {words.empty.action}
                </ButtonLink>
              }
              curl={`curl -s -X POST '${serviceUrl()}/api/folders/FOLDER_ID/share' \\\n  -H "Authorization: Bearer $KEY" --json '{"expiresIn": 604800}'`}
              guide={{ href: "/guides/share", label: words.empty.guide }}
            >
              {words.empty.body}
            </EmptyState>
          ) : (
            <>
              <ShareTable shares={shares} changed={list.reload} />
              {hasMore && <Button onClick={list.more}>{words.more}</Button>}
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

function ShareTable({ shares, changed }: { shares: ShareListed[]; changed: () => void }) {
  return (
    <div class="card">
      <table class="table table-cards">
        <thead>
          <tr>
            <th scope="col">{words.folder}</th>
            <th scope="col">{words.expires}</th>
            <th scope="col">{words.terms}</th>
            <th scope="col">{words.used}</th>
            <th scope="col">
              <span class="visually-hidden">{words.actions}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {shares.map((share) => (
            <tr key={share.folderId}>
              <th scope="row">
                <a href={href(`/files/${share.folderId}`)}>
                  <Name>{share.folder.path.map(({ name }) => name).join(" / ")}</Name>
                </a>
              </th>
              <td data-label={words.expires}>
                {share.expiresAt ? <Time at={share.expiresAt} /> : shareWords.never}
              </td>
              <td data-label={words.terms}>
                <ShareTerms share={share} />
              </td>
              <td data-label={words.used} class="numeric">
                {shareWords.counts(share.viewCount, share.downloadCount, share.downloadLimit)}
              </td>
              <td class="end">
                <span class="actions shares-actions">
                  <CopyButton value={share.url} what={`${words.link} ${share.folder.name}`} text />
                  <Button small onClick={() => openShare(share.folder).then(changed)}>
                    {words.details}
                  </Button>
                  {can("write") && (
                    <Button
                      small
                      look="danger"
                      onClick={() => revoke(share.folderId).then((done) => done && changed())}
                    >
                      {words.revoke}
                    </Button>
                  )}
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
