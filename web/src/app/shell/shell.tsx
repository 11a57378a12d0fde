/** What surrounds every screen of a signed-in user. */
import { api } from "../api/client";
import { offlineSince } from "../api/connection";
import { can, session } from "../api/session";
import { Dialog, Dialogs, openDialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { Menu } from "../parts/menu";
import { Badge } from "../parts/states";
import { Segmented } from "../parts/tabs";
import { href, path } from "../router";
import { type Place, places } from "../routes";
import { OfflineBanner } from "./banners";
import { showCurl } from "./curl_panel";
import { matched, Outlet, prefetch } from "./outlet";
import { openPalette } from "./palette";
import { choose, type Scheme, scheme } from "./scheme";
import { SessionOver } from "./session_over";
import { paletteKey, showKeyHelp } from "./shortcuts";
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

const isCurrent = ({ to }: Place) =>
  to === "/" ? path.value === "/" : path.value === to || path.value.startsWith(`${to}/`);

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
        {places.map((place) => (
          <PlaceLink key={place.to} place={place} />
        ))}
      </div>
      <div class="side-nav side-foot">
        <a href="/docs" target="_blank" rel="noopener">
          <Icon name="book" />
          <span>{words.reference}</span>
        </a>
      </div>
    </nav>
  );
}

export function Waves() {
  return (
    <svg class="mark" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#0b3a44" />
      <g fill="none" stroke-linecap="round" stroke-width="2.6">
        <path d="M6 11c3.3-3 6.7-3 10 0s6.7 3 10 0" stroke="#8fe3ec" />
        <path d="M6 17c3.3-3 6.7-3 10 0s6.7 3 10 0" stroke="#4bbfce" />
        <path d="M6 23c3.3-3 6.7-3 10 0s6.7 3 10 0" stroke="#1f8fa1" />
      </g>
    </svg>
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
      <span class="top-state">
        {offlineSince.value ? (
          <Badge tone="bad" dot>
            {words.offline}
          </Badge>
        ) : (
          <Badge tone="good" dot>
            {words.connected}
          </Badge>
        )}
      </span>
      <UserMenu />
    </header>
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
        { label: words.keyHelp, icon: "help", onSelect: showKeyHelp },
        { label: words.signOut, icon: "out", onSelect: signOut },
      ]}
    />
  );
}

/** Ends the session and leaves nothing of it in this tab. */
async function signOut() {
  await api.delete("/api/session", { anonymous: true }).catch(() => {});
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

/** On phones: the first three places, and the others behind "More". */
function PhoneBar() {
  const more = () =>
    openDialog((close) => (
      <Dialog title={words.more} onClose={close}>
        {/* biome-ignore lint/a11y/useKeyWithClickEvents: a link inside is activated by its own keys, which click */}
        {/* biome-ignore lint/a11y/noStaticElementInteractions: it only closes after a link was followed */}
        <div class="more-places" onClick={close}>
          {places.slice(3).map((place) => (
            <PlaceLink key={place.to} place={place} />
          ))}
          <a href="/docs" target="_blank" rel="noopener">
            <Icon name="book" />
            <span>{words.reference}</span>
          </a>
        </div>
      </Dialog>
    ));
  return (
    <nav class="phone" aria-label={words.navigation}>
      {places.slice(0, 3).map((place) => (
        <PlaceLink key={place.to} place={place} />
      ))}
      <button type="button" aria-haspopup="dialog" onClick={more}>
        <Icon name="more" />
        <span>{words.more}</span>
      </button>
    </nav>
  );
}
