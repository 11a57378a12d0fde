/** The texts of the shares screen. */
export const words = {
  title: "Shares",
  files: "Files",
  folder: "Folder",
  link: "Link",
  terms: "Terms",
  expires: "Valid until",
  used: "Used",
  actions: "Actions",
  details: "Details",
  more: "Show more",
  revoke: "Revoke",
  empty: {
    title: "Nothing is shared",
    body: "A link gives access to a folder and everything below it, without an account. Open a folder and press Share.",
    action: "Go to files",
    guide: "Shared folders",
  },
};
