/** Words of the welcome screen, where the first password is chosen. */
export const words = {
  title: "Welcome to Sluice",
  lead: "Choose a password. That is all: you are signed in afterwards.",
  password: "New password",
  hint: "At least 8 characters; a password manager may fill it.",
  show: "Show the password",
  begin: "Begin",
  noCode: "This address has no code. Open the whole link that the service printed, or that you were sent.",
  another:
    "The link works once, and for a limited time. An admin of your account can make another one; so does this, on the machine of the service:",
  signIn: "Sign in with a password",
};
