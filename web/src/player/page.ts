/** The elements of `pages/player.html` that the player moves. One place that knows their ids. */

function element<T extends Element>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`player.html has no ${kind.name} with the id ${id}`);
  return found;
}

export function findPage() {
  return {
    screen: element("screen", HTMLElement),
    video: element("video", HTMLVideoElement),
    curtain: element("curtain", HTMLElement),
    title: element("title", HTMLElement),
    detail: element("detail", HTMLElement),
    announcement: element("announcement", HTMLElement),
    notice: element("notice", HTMLElement),
    badge: element("badge", HTMLElement),
    badgeText: element("badge-text", HTMLElement),
    unmute: element("unmute", HTMLButtonElement),
    play: element("play", HTMLButtonElement),
    mute: element("mute", HTMLButtonElement),
    volume: element("volume", HTMLInputElement),
    goLive: element("go-live", HTMLButtonElement),
    fullscreen: element("fullscreen", HTMLButtonElement),
    bar: element("bar", HTMLElement),
  };
}

export type Page = ReturnType<typeof findPage>;
