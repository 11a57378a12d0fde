/** The host names of a text that separates them by commas, spaces or lines. */
export const hostsOf = (text: string) => text.split(/[\s,]+/).filter(Boolean);
