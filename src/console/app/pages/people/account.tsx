/** The account of a person: name, password, sessions, and the ways to their tokens. */
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { PrincipalJson } from "../../../../../gen/tessera/v1/auth_pb.js";
import { auth } from "../../api/clients.ts";
import { me, titleOf } from "../../api/session.ts";
import { SinglePage } from "../../shell/single-page.tsx";
import { FieldsForm, textOf } from "../../ui/fields-form.tsx";
import { useToast } from "../../ui/toasts.tsx";
import { ChangePassword } from "./change-password.tsx";
import { Sessions } from "./sessions.tsx";
import "./account.css";

export function Account() {
  const { data: person } = useSuspenseQuery(me);
  const { email, organizations = [] } = person;
  return (
    <SinglePage title="Your account" description={email} person={person} width="wide">
      <section className="card">
        <h2>Profile</h2>
        <ChangeName person={person} />
      </section>
      <section className="card">
        <h2>Password</h2>
        <ChangePassword email={email ?? ""} />
      </section>
      <Sessions />
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
    </SinglePage>
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
