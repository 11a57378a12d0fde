/** The first visit of an invited person: a name, a password, and they are signed in. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { ApiError } from "../../api/error";
import { useResource } from "../../api/resource";
import { type Role, type Session, signedIn } from "../../api/session";
import { ButtonLink, Submit } from "../../parts/button";
import { Checkbox, Form, TextField } from "../../parts/form";
import { Waves } from "../../parts/icon";
import { PageTitle } from "../../parts/page";
import { Callout, Loaded, Skeleton } from "../../parts/states";
import { Name, Time } from "../../parts/values";
import { href } from "../../router";
import { joinCode } from "../../shell/welcome_code";
import { words } from "./words";

interface Offer {
  role: Role;
  accountName: string;
  expiresAt: string;
}

export default function Join() {
  const [gone, setGone] = useState<string | undefined>(joinCode ? undefined : words.noCode);
  const offer = useResource<Offer>(
    async (signal) => {
      const body = { code: joinCode };
      try {
        return await api.post<Offer>("/api/invitations/look", body, { anonymous: true, signal });
      } catch (thrown) {
        if ((thrown as ApiError).status === 410) setGone((thrown as ApiError).message);
        throw thrown;
      }
    },
    [],
    { when: Boolean(joinCode) },
  );
  return (
    <div class="gate">
      <PageTitle title={words.title} />
      <div class="gate-card">
        <Waves />
        <h1 tabIndex={-1}>{words.title}</h1>
        {gone ? (
          <>
            <Callout tone="warn" title={gone} />
            <p class="soft small">{words.another}</p>
            <ButtonLink href={href("/sign-in")} look="solid">
              {words.signIn}
            </ButtonLink>
          </>
        ) : (
          <Loaded of={offer} skeleton={<Skeleton rows={4} height={44} />}>
            {(offer) => <JoinForm offer={offer} onGone={setGone} />}
          </Loaded>
        )}
      </div>
    </div>
  );
}

function JoinForm({ offer, onGone }: { offer: Offer; onGone: (message: string) => void }) {
  const [isShown, setShown] = useState(false);
  const join = async (values: FormData) => {
    const body = { code: joinCode, name: values.get("name"), password: values.get("password") };
    try {
      signedIn(await api.post<Session>("/api/invitations/redeem", body, { anonymous: true }));
    } catch (thrown) {
      if ((thrown as ApiError).status !== 410) throw thrown;
      return onGone((thrown as ApiError).message);
    }
    location.replace(href("/"));
  };
  return (
    <Form action={join} label={words.title}>
      <p>
        {words.lead}{" "}
        <strong>
          <Name>{offer.accountName}</Name>
        </strong>{" "}
        {words.as[offer.role]}.
        <br />
        <span class="soft small">{words.rights[offer.role]}</span>
      </p>
      <TextField
        label={words.name}
        name="name"
        autoComplete="username"
        autoCapitalize="none"
        spellcheck={false}
        maxLength={64}
        required
        autoFocus
        hint={words.nameHint}
      />
      <TextField
        label={words.password}
        name="password"
        type={isShown ? "text" : "password"}
        autoComplete="new-password"
        minLength={8}
        required
        hint={words.passwordHint}
      />
      <Checkbox
        label={words.show}
        checked={isShown}
        onChange={(event) => setShown(event.currentTarget.checked)}
      />
      <Submit>{words.join}</Submit>
      <p class="soft small">
        {words.expires} <Time at={offer.expiresAt} />.
      </p>
    </Form>
  );
}
