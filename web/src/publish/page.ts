/** The elements of `pages/publish.html`. One place that knows their ids. */

function element<T extends Element>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`publish.html has no ${kind.name} with the id ${id}`);
  return found;
}

export function findPage() {
  return {
    root: element("publish", HTMLElement),
    insecure: element("insecure", HTMLElement),
    httpsLink: element("https-link", HTMLAnchorElement),
    localhostLink: element("localhost-link", HTMLElement),
    studio: element("studio", HTMLElement),
    video: element("video", HTMLVideoElement),
    curtain: element("curtain", HTMLElement),
    share: element("share", HTMLButtonElement),
    badge: element("badge", HTMLElement),
    badgeText: element("badge-text", HTMLElement),
    meters: element("meters", HTMLElement),
    microphoneMeter: element("microphone-meter", HTMLElement),
    microphoneLevel: element("microphone-level", HTMLElement),
    mute: element("mute", HTMLButtonElement),
    systemMeter: element("system-meter", HTMLElement),
    systemLevel: element("system-level", HTMLElement),
    facts: element("facts", HTMLElement),
    bitrate: element("bitrate", HTMLElement),
    format: element("format", HTMLElement),
    roundTrip: element("round-trip", HTMLElement),
    dropped: element("dropped", HTMLElement),
    form: element("form", HTMLFormElement),
    cameraField: element("camera-field", HTMLElement),
    camera: element("camera", HTMLSelectElement),
    microphone: element("microphone", HTMLSelectElement),
    voice: element("voice", HTMLInputElement),
    resolution: element("resolution", HTMLSelectElement),
    rate: element("rate", HTMLSelectElement),
    key: element("key", HTMLInputElement),
    problem: element("problem", HTMLElement),
    problemTitle: element("problem-title", HTMLElement),
    problemDetail: element("problem-detail", HTMLElement),
    go: element("go", HTMLButtonElement),
    stop: element("stop", HTMLButtonElement),
    announcement: element("announcement", HTMLElement),
  };
}

export type Page = ReturnType<typeof findPage>;
