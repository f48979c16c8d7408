/** The account of a person: name, password, sessions, and the ways to their tokens. */
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type {
  ChangePasswordResponseJson,
  PrincipalJson,
} from "../../../../../gen/tessera/v1/auth_pb.js";
import { auth } from "../../api/clients.ts";
import { me, titleOf } from "../../api/session.ts";
import { SinglePage } from "../../shell/single-page.tsx";
import { Button } from "../../ui/button.tsx";
import { FieldsForm, textOf } from "../../ui/fields-form.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Page } from "../../ui/page.tsx";
import { useToast } from "../../ui/toasts.tsx";
import { Sessions } from "./sessions.tsx";
import "./account.css";

/** In the shell of an organization that the person is in. */
export function Account() {
  const { data: person } = useSuspenseQuery(me);
  return (
    <Page title={TITLE} description={person.email}>
      <Sections person={person} />
    </Page>
  );
}

/** Of a person who is in no organization. */
export function AccountAlone() {
  const { data: person } = useSuspenseQuery(me);
  return (
    <SinglePage title={TITLE} description={person.email} person={person} width="wide">
      <Sections person={person} />
    </SinglePage>
  );
}

const TITLE = "Your account";

function Sections({ person }: { readonly person: PrincipalJson }) {
  const { email, organizations = [] } = person;
  return (
    <div className="account">
      <section className="card">
        <h2>Profile</h2>
        <ChangeName person={person} />
      </section>
      <Sessions />
      <Password email={email ?? ""} />
      <section className="card">
        <h2>API tokens</h2>
        {organizations.length === 0 ? (
          <p className="secondary">Tokens belong to an organization, and you are in none yet.</p>
        ) : (
          <ul className="link-rows">
            {organizations.map((organization) => (
              <li key={organization.name}>
                <Link
                  to="/o/$organization/tokens"
                  params={{ organization: organization.name ?? "" }}
                >
                  <bdi>My tokens in {titleOf(organization)}</bdi>
                </Link>
              </li>
            ))}
          </ul>
        )}
      </section>
    </div>
  );
}

/** The form is seen by who asks for it: most who come here want something else. */
function Password({ email }: { readonly email: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <section className="card">
      <header className="section-header">
        <h2>Password</h2>
        {!isOpen && <Button onClick={() => setOpen(true)}>Change password</Button>}
      </header>
      {isOpen && <ChangePassword email={email} />}
    </section>
  );
}

/** Sets the name by which other people see the person. */
function ChangeName({ person }: { readonly person: PrincipalJson }) {
  const queryClient = useQueryClient();
  const toast = useToast();
  return (
    <FieldsForm
      fields={[
        {
          name: "display_name",
          label: "Name",
          hint: "What people in your organizations see. Without one, they see your e-mail address.",
          autoComplete: "name",
          optional: true,
          maxLength: 100,
          defaultValue: person.displayName ?? "",
        },
      ]}
      submit="Save name"
      needsChange
      send={(values) => auth.changeDisplayName({ displayName: textOf(values, "display_name") })}
      onDone={(changed) => {
        queryClient.setQueryData(me.queryKey, changed);
        void queryClient.invalidateQueries({ queryKey: ["members"] });
        toast("Your name is saved");
      }}
    />
  );
}

/** Sets another password, and says what ended with it and what did not. */
function ChangePassword({ email }: { readonly email: string }) {
  const queryClient = useQueryClient();
  const [changed, setChanged] = useState<ChangePasswordResponseJson>();
  if (changed !== undefined) {
    return <Changed changed={changed} />;
  }
  return (
    <FieldsForm
      fields={[
        {
          name: "current_password",
          label: "Current password",
          type: "password",
          autoComplete: "current-password",
        },
        {
          name: "new_password",
          label: "New password",
          type: "password",
          hint: "At least 10 characters. Your sessions in other browsers end.",
          autoComplete: "new-password",
          minLength: 10,
        },
      ]}
      submit="Change password"
      isMain
      needsChange
      send={(values) =>
        auth.changePassword({
          currentPassword: textOf(values, "current_password"),
          newPassword: textOf(values, "new_password"),
          revokeTokens: values.has("revoke_tokens"),
        })
      }
      onDone={(answer) => {
        setChanged(answer);
        void queryClient.invalidateQueries({ queryKey: ["sessions"] });
      }}
    >
      {/* Password managers keep the new password with this name. */}
      <input hidden autoComplete="username" readOnly value={email} />
      <label className="choice">
        <input type="checkbox" name="revoke_tokens" />
        <span>
          End my personal tokens, too
          <span className="hint">
            If somebody else knew your password. Programs that use them have to log in again.
          </span>
        </span>
      </label>
    </FieldsForm>
  );
}

function Changed({ changed }: { readonly changed: ChangePasswordResponseJson }) {
  const { endedSessions = 0, endedTokens = 0, keptTokens = [], keptTokenCount = 0 } = changed;
  const more = keptTokenCount - keptTokens.length;
  return (
    <>
      <Notice kind="success">
        Your password is changed. Other sessions that ended: {endedSessions}.
        {endedTokens > 0 && ` Personal tokens that ended: ${endedTokens}.`}
      </Notice>
      {keptTokens.length > 0 && (
        <>
          <h3>Personal tokens that stay valid</h3>
          <ul>
            {keptTokens.map(({ tokenId, name, organization }) => (
              <li key={tokenId}>
                <bdi>{name}</bdi> ({organization})
              </li>
            ))}
            {more > 0 && <li>and {more} more</li>}
          </ul>
        </>
      )}
    </>
  );
}
