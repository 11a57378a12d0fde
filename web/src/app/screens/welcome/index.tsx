/** The first sign-in: the link that the service printed, and a password of one's own. */
import { useRef, useState } from "preact/hooks";
import { api } from "../../api/client";
import type { ApiError } from "../../api/error";
import { type Session, signedIn } from "../../api/session";
import { ButtonLink, Submit } from "../../parts/button";
import { Checkbox, Form, TextField } from "../../parts/form";
import { Waves } from "../../parts/icon";
import { PageTitle } from "../../parts/page";
import { Callout } from "../../parts/states";
import { href } from "../../router";
import { welcomeCode } from "../../shell/welcome_code";
import { words } from "./words";

export default function Welcome() {
  const [problem, setProblem] = useState<string | undefined>(welcomeCode ? undefined : words.noCode);
  const username = useRef<HTMLInputElement>(null);
  const [isShown, setShown] = useState(false);
  const choosePassword = async (values: FormData) => {
    const newPassword = String(values.get("newPassword"));
    try {
      const body = { code: welcomeCode, newPassword };
      const session = await api.post<Session>("/api/session/welcome", body, { anonymous: true });
      // Password managers take the name from the form, which the link does not know before.
      if (username.current) username.current.value = session.user.username;
      signedIn(session);
    } catch (thrown) {
      if ((thrown as ApiError).status !== 410) throw thrown;
      setProblem((thrown as ApiError).message);
      return;
    }
    location.replace(href("/"));
  };
  return (
    <div class="gate">
      <PageTitle title={words.title} />
      <div class="gate-card">
        <Waves />
        <h1 tabIndex={-1}>{words.title}</h1>
        {problem ? (
          <>
            <Callout tone="warn" title={problem} />
            <p class="soft small">
              {words.another} <code>sluice users welcome admin</code>
            </p>
            <ButtonLink href={href("/sign-in")} look="solid">
              {words.signIn}
            </ButtonLink>
          </>
        ) : (
          <Form action={choosePassword} label={words.title}>
            <p class="soft">{words.lead}</p>
            <input
              type="text"
              name="username"
              ref={username}
              autoComplete="username"
              class="visually-hidden"
              readOnly
              tabIndex={-1}
              aria-hidden="true"
            />
            <TextField
              label={words.password}
              name="newPassword"
              type={isShown ? "text" : "password"}
              autoComplete="new-password"
              minLength={8}
              required
              autoFocus
              hint={words.hint}
            />
            <Checkbox
              label={words.show}
              checked={isShown}
              onChange={(event) => setShown(event.currentTarget.checked)}
            />
            <Submit>{words.begin}</Submit>
          </Form>
        )}
      </div>
    </div>
  );
}
