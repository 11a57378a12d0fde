/** Signing in, and back to the screen that was asked for. */
import { address } from "../../api/base";
import { api } from "../../api/client";
import { type Session, signedIn } from "../../api/session";
import { Submit } from "../../parts/button";
import { Form, TextField } from "../../parts/form";
import { Waves } from "../../parts/icon";
import { PageTitle } from "../../parts/page";
import { href, query } from "../../router";
import { words } from "./words";

export default function SignIn() {
  const signIn = async (values: FormData) => {
    const username = String(values.get("username"));
    signedIn(
      await api.post<Session>(
        "/api/session",
        { username, password: values.get("password") },
        { anonymous: true },
      ),
    );
    // A load of its own: password managers save now, and the form is in no history entry.
    location.replace(backTo());
  };
  return (
    <div class="gate">
      <PageTitle title={words.title} />
      <div class="gate-card">
        <Waves />
        <h1 tabIndex={-1}>{words.title}</h1>
        <Form action={signIn} label={words.title}>
          <TextField
            label={words.username}
            name="username"
            autoComplete="username"
            autoCapitalize="none"
            spellcheck={false}
            required
            autoFocus
          />
          <TextField
            label={words.password}
            name="password"
            type="password"
            autoComplete="current-password"
            required
          />
          <Submit>{words.signIn}</Submit>
        </Form>
        <p class="soft small">
          {words.lost} <code>sluice users reset-password NAME</code>
        </p>
      </div>
      <p class="gate-foot">
        <a href={address("/docs")}>{words.reference}</a>
      </p>
    </div>
  );
}

/** The screen that led here; never an address outside of the dashboard. */
function backTo(): string {
  const next = query.value.get("next") ?? "/";
  const target = new URL(href(next.startsWith("/") ? next : "/"), location.href);
  return target.origin === location.origin && target.pathname.startsWith(href("/")) ? target.href : href("/");
}
