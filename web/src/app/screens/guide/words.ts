/** The texts around a guide. */
export const words = {
  all: "Guides",
  missing: "There is no such guide.",
  code: "Example",
};
