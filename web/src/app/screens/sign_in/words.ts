/** Words of the sign-in screen. */
export const words = {
  title: "Sign in to Sluice",
  username: "User name",
  password: "Password",
  signIn: "Sign in",
  lost: "Lost the password? On the machine of the service, this makes another one:",
  reference: "API reference",
};
