/** What surrounds every screen of a signed-in user. */
import { render } from "preact";
import { address } from "../api/base";
import { api } from "../api/client";
import { offlineSince } from "../api/connection";
import { can, session } from "../api/session";
import { Button } from "../parts/button";
import { Dialog, Dialogs, openDialog } from "../parts/dialog";
import { Icon, Waves } from "../parts/icon";
import { Menu } from "../parts/menu";
import { Badge } from "../parts/states";
import { Segmented } from "../parts/tabs";
import { href, path } from "../router";
import { isReachable, type Place, places } from "../routes";
import { OfflineBanner, SystemBanner } from "./banners";
import { showCurl } from "./curl_panel";
import { matched, Outlet, prefetch } from "./outlet";
import { openPalette } from "./palette";
import { installation, problems } from "./readiness";
import { choose, type Scheme, scheme } from "./scheme";
import { SessionOver } from "./session_over";
import { paletteKey, showHelp } from "./shortcuts";
import { Toasts } from "./toasts";
import { Tray } from "./tray";
import { words } from "./words";

export function Shell() {
  const isBare = matched().route.bare || !session.value;
  return (
    <div class={isBare ? "bare" : "shell"}>
      {!isBare && <Side />}
      <div class="shell-column">
        {!isBare && <TopBar />}
        <OfflineBanner />
        {!isBare && <SystemBanner />}
        <Outlet />
      </div>
      {!isBare && <PhoneBar />}
      <Tray />
      <Toasts />
      <Dialogs />
      <SessionOver />
    </div>
  );
}

const isCurrent = ({ to, also = [] }: Place) =>
  to === "/"
    ? path.value === "/"
    : [to, ...also].some((each) => path.value === each || path.value.startsWith(`${each}/`));

function PlaceLink({ place }: { place: Place }) {
  return (
    <a
      href={href(place.to)}
      aria-current={isCurrent(place) ? "page" : undefined}
      onPointerEnter={() => prefetch(place.to)}
      onFocus={() => prefetch(place.to)}
    >
      <Icon name={place.icon} />
      <span>{place.label}</span>
    </a>
  );
}

function Side() {
  return (
    <nav class="side" aria-label={words.navigation}>
      <a class="side-brand" href={href("/")} aria-label={words.home}>
        <Waves />
        <span class="wordmark">Sluice</span>
      </a>
      <div class="side-nav">
        {places.filter(isReachable).map((place) => (
          <PlaceLink key={place.to} place={place} />
        ))}
      </div>
      <div class="side-nav side-foot">
        <a href={address("/docs")} target="_blank" rel="noopener">
          <Icon name="book" />
          <span>{words.reference}</span>
        </a>
        <StatusLine />
      </div>
    </nav>
  );
}

/** The version, and whether a newer program waits for a restart: for operators, who can do something about it. */
function StatusLine() {
  if (!installation.value) return null;
  const { version, newerProgram, newerSchemaWaits } = installation.value;
  return (
    <a
      class="side-status"
      href={href("/system")}
      aria-label={newerProgram ? undefined : words.version(version)}
    >
      <span class="numeric">Sluice {version}</span>
      {newerProgram && (
        <Badge tone="info">{newerSchemaWaits ? words.newSchema : words.restart(newerProgram.version)}</Badge>
      )}
    </a>
  );
}

function TopBar() {
  return (
    <header class="top">
      <a class="top-brand" href={href("/")} aria-label={words.home}>
        <Waves />
      </a>
      <button type="button" class="top-search" onClick={openPalette}>
        <Icon name="search" />
        <span class="top-search-text">{words.searchShort}</span>
        <kbd>{paletteKey}</kbd>
      </button>
      <a class="top-state" href={href("/")}>
        <ServiceState />
      </a>
      <Button
        look="quiet"
        icon="help"
        label={words.help}
        aria-haspopup="dialog"
        aria-keyshortcuts="?"
        onClick={showHelp}
      />
      <UserMenu />
    </header>
  );
}

function ServiceState() {
  const [tone, text] = offlineSince.value
    ? (["bad", words.offline] as const)
    : problems.value.length > 0
      ? ([problems.value.some((problem) => problem.blocking) ? "bad" : "warn", words.degraded] as const)
      : (["good", words.ready] as const);
  return (
    <Badge tone={tone} dot>
      {text}
    </Badge>
  );
}

function UserMenu() {
  const user = session.value?.user;
  if (!user) return null;
  return (
    <Menu
      label={words.userMenu}
      class="top-user"
      button={
        <>
          <Icon name="user" />
          <bdi class="top-user-name">{user.username}</bdi>
          <Icon name="down" />
        </>
      }
      items={[
        { label: words.account, icon: "user", href: href("/settings/account") },
        can("admin") && { label: words.keys, icon: "key", href: href("/settings/api/keys") },
        { label: words.appearance, icon: scheme.value === "dark" ? "moon" : "sun", onSelect: chooseScheme },
        { label: words.curl, icon: "terminal", onSelect: showCurl },
        { label: words.help, icon: "help", onSelect: showHelp },
        { label: words.signOut, icon: "out", onSelect: signOut },
      ]}
    />
  );
}

/** Ends the session and leaves nothing of it in this tab. */
async function signOut() {
  await api.delete("/api/session", { anonymous: true }).catch(() => {});
  render(null, document.getElementById("app") as HTMLElement);
  location.replace(href("/sign-in"));
}

function chooseScheme() {
  openDialog((close) => (
    <Dialog title={words.appearance} onClose={close}>
      <SchemeChoice />
    </Dialog>
  ));
}

export function SchemeChoice() {
  return (
    <Segmented<Scheme>
      label={words.appearance}
      value={scheme.value}
      onChange={choose}
      choices={[
        { value: "auto", label: words.auto },
        { value: "light", label: words.light },
        { value: "dark", label: words.dark },
      ]}
    />
  );
}

/** On phones: the places of every day, and the others behind "More". */
function PhoneBar() {
  const more = () =>
    openDialog((close) => (
      <Dialog title={words.more} onClose={close}>
        {/* biome-ignore lint/a11y/useKeyWithClickEvents: a link inside is activated by its own keys, which click */}
        {/* biome-ignore lint/a11y/noStaticElementInteractions: it only closes after a link was followed */}
        <div class="more-places" onClick={close}>
          {places
            .filter(({ phone }) => !phone)
            .filter(isReachable)
            .map((place) => (
              <PlaceLink key={place.to} place={place} />
            ))}
          <a href={address("/docs")} target="_blank" rel="noopener">
            <Icon name="book" />
            <span>{words.reference}</span>
          </a>
        </div>
      </Dialog>
    ));
  return (
    <nav class="phone" aria-label={words.navigation}>
      {places
        .filter(({ phone }) => phone)
        .map((place) => (
          <PlaceLink key={place.to} place={place} />
        ))}
      <button type="button" aria-haspopup="dialog" onClick={more}>
        <Icon name="more" />
        <span>{words.more}</span>
      </button>
    </nav>
  );
}
