/** Asks for the password over the page when the session has ended, so that nothing typed is lost. */
import { api } from "../api/client";
import { isSessionOver, type Session, session, signedIn } from "../api/session";
import { Submit } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { Form, TextField } from "../parts/form";
import { href } from "../router";

export function SessionOver() {
  const user = session.value?.user;
  if (!isSessionOver.value || !user) return null;
  const signIn = async (values: FormData) => {
    const password = values.get("password");
    signedIn(
      await api.post<Session>("/api/session", { username: user.username, password }, { anonymous: true }),
    );
  };
  return (
    <Dialog title="Your session is over" onClose={() => {}} firm>
      <Form action={signIn}>
        <p>
          Enter the password of <bdi>{user.username}</bdi> to continue. What you have typed is kept.
        </p>
        <input
          type="text"
          name="username"
          value={user.username}
          autoComplete="username"
          class="visually-hidden"
          readOnly
          tabIndex={-1}
          aria-hidden="true"
        />
        <TextField
          label="Password"
          name="password"
          type="password"
          autoComplete="current-password"
          required
        />
        <div class="dialog-actions">
          <a class="btn btn-plain" href={href("/sign-in")} target="_self">
            Sign in as another user
          </a>
          <Submit>Sign in</Submit>
        </div>
      </Form>
    </Dialog>
  );
}
