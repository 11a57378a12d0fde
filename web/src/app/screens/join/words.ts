/** Words of the page on which an invited person joins. */
import type { Role } from "../../api/session";

export const words = {
  title: "Join Sluice",
  lead: "You are invited to",
  as: { viewer: "as a viewer", member: "as a member", admin: "as an admin" } as Record<Role, string>,
  rights: {
    viewer: "You can look at everything and change nothing.",
    member: "You can work with files, live inputs, conversions, workflows and webhooks.",
    admin: "You can do everything, and manage keys and members.",
  } as Record<Role, string>,
  name: "Your name",
  nameHint: "With it you sign in: letters, digits and . _ @ + -",
  password: "Password",
  passwordHint: "At least 8 characters; a password manager may fill it.",
  show: "Show the password",
  join: "Join",
  expires: "The invitation can be used until",
  noCode: "This address has no code. Open the whole link that you were sent.",
  another: "An invitation works once. An admin of the account can make another one.",
  signIn: "Sign in with a password",
};
