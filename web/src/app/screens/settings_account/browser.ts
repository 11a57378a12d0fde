/** The browser and system that a user agent names, in two words; the text itself where it names none that is known. */
export function browserName(userAgent: string): string {
  const browser = BROWSERS.find(([, pattern]) => pattern.test(userAgent))?.[0];
  const system = SYSTEMS.find(([, pattern]) => pattern.test(userAgent))?.[0];
  if (!browser) return userAgent;
  return system ? `${browser} on ${system}` : browser;
}

// In this order: each of the later ones is also named by the earlier ones' user agents.
const BROWSERS: [string, RegExp][] = [
  ["Edge", /Edg(e|A|iOS)?\//],
  ["Opera", /OPR\//],
  ["Firefox", /(Firefox|FxiOS)\//],
  ["Chrome", /(Chrome|CriOS|HeadlessChrome)\//],
  ["Safari", /Safari\//],
  ["curl", /^curl\//],
];

const SYSTEMS: [string, RegExp][] = [
  ["Android", /Android/],
  ["iPhone", /iPhone/],
  ["iPad", /iPad/],
  ["Windows", /Windows/],
  ["macOS", /Mac OS X/],
  ["Linux", /Linux/],
];
