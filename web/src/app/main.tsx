/**
 * The dashboard: an application in the browser over the service's API, at `/app`.
 *
 * How a screen is added:
 * 1. A folder `screens/NAME/` with `index.tsx`, whose default export takes `ScreenProps` and draws a `<Page>`; its texts are
 *    in `words.ts` beside it, its styles in `NAME.css` (imported by `styles/app.css`).
 * 2. One line in `routes.ts`. The screen becomes a chunk of its own that is loaded when it is needed; `build.mjs` fails when
 *    it has more than 15 kB on the wire.
 *
 *     export default function Things({ params }: ScreenProps) {
 *       const things = useResource((signal) => api.get<Things>("/api/things", { signal }), [], { on: ["thing"] });
 *       return (
 *         <Page title={words.title} actions={<Button look="solid" icon="plus" onClick={newThing}>{words.new}</Button>}>
 *           <Loaded of={things}>{({ things }) => <List things={things} />}</Loaded>
 *         </Page>
 *       );
 *     }
 *
 * `api/` asks the service and follows its changes, `parts/` has the controls, `shell/` what surrounds a screen. Screens do
 * not import one another. Text from users and from the service is only ever put into the page as text.
 */
import "./shell/welcome_code";
import { render } from "preact";
import { followChanges } from "./api/changes";
import { currentSession } from "./api/client";
import { connectionFailed, reconnections } from "./api/connection";
import { asApiError } from "./api/error";
import { session } from "./api/session";
import { go, path, startRouter } from "./router";
import { matched, prefetch } from "./shell/outlet";
import { watchReadiness } from "./shell/readiness";
import { startScheme } from "./shell/scheme";
import { Shell } from "./shell/shell";
import { startShortcuts } from "./shell/shortcuts";

async function start() {
  startScheme();
  prefetch(path.value);
  await findSession();
  startRouter();
  startShortcuts();
  followChanges();
  watchReadiness();
  // A page that the browser kept for "back" may be of a session that has ended.
  addEventListener("pageshow", (event) => event.persisted && location.reload());
  const place = document.getElementById("app");
  if (!place) return;
  // Preact keeps what is there beside what it renders.
  place.replaceChildren();
  render(<Shell />, place);
}

/** Without a session every screen leads to sign-in, which leads back to it. */
async function findSession() {
  const { route } = matched();
  if (route.path === "/welcome" || route.path === "/join") {
    session.value = null;
    return;
  }
  session.value = await currentSession().catch(waitForSession);
  if (!session.value && !route.bare)
    go("/sign-in", { replace: true, search: { next: path.value + location.search } });
  else if (session.value && route.path === "/sign-in") go("/", { replace: true });
}

/** How long to wait before an answer that was an error is asked for again, unless it says so itself. */
const AGAIN_AFTER_S = 15;

/** The service does not answer, or not with a session (the account is suspended): the page's own text says so until it does. */
function waitForSession(thrown: unknown): Promise<null> {
  const error = asApiError(thrown);
  const place = document.getElementById("starting");
  if (place && error.status !== 0) place.textContent = `${error.message}.`;
  place?.parentElement?.removeAttribute("hidden");
  return new Promise(() => {
    if (error.status !== 0)
      return setTimeout(() => location.reload(), (error.retryAfter ?? AGAIN_AFTER_S) * 1_000);
    connectionFailed();
    reconnections.subscribe((count) => count > 0 && location.reload());
  });
}

start();
