/** Joins an organization by the link of an invitation. */
import { queryOptions, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { PrincipalJson } from "../../../../../gen/tessera/v1/auth_pb.js";
import { auth } from "../../api/clients.ts";
import { CallError } from "../../api/errors.ts";
import { roleName } from "../../api/members.ts";
import { visitor } from "../../api/sign-in.ts";
import { SinglePage } from "../../shell/single-page.tsx";
import { Facts } from "../../ui/facts.tsx";
import { FieldsForm, type FormField, textOf } from "../../ui/fields-form.tsx";
import { securedPath } from "./ended-credentials.ts";

/** The invitation; null if this code has none. */
const invitationOf = (invitationCode: string) =>
  queryOptions({
    queryKey: ["invitation", invitationCode],
    queryFn: async ({ signal }) => {
      try {
        return await auth.getInvitation({ invitationCode }, { signal });
      } catch (err) {
        if (err instanceof CallError && err.reason === "INVITATION_NOT_FOUND") {
          return null;
        }
        throw err;
      }
    },
  });

type Name = "display_name" | "password";

const NEW_PERSON: readonly FormField<Name>[] = [
  { name: "display_name", label: "Your name", optional: true, autoComplete: "name" },
  {
    name: "password",
    label: "Password",
    type: "password",
    hint: "A new one of at least 10 characters.",
    autoComplete: "new-password",
    minLength: 10,
  },
];
const KNOWN_PERSON: readonly FormField<Name>[] = [
  {
    name: "password",
    label: "Password",
    type: "password",
    hint: "The password of your account here.",
    autoComplete: "current-password",
  },
];

const route = getRouteApi("/invitation");

export function Invitation() {
  const { code } = route.useRouteContext();
  const { data: person } = useSuspenseQuery(visitor);
  const { data: invitation } = useSuspenseQuery(invitationOf(code));
  if (invitation === null) {
    return (
      <SinglePage
        title="This invitation cannot be used"
        description="It was used already, withdrawn, or is older than 7 days; or the link was not copied as a whole. Ask the sender for another one."
      />
    );
  }
  const { organization, email = "", role, createdBy, setsPassword = false } = invitation;
  const isSignedIn = person?.email === email && !setsPassword;
  const fields = setsPassword ? NEW_PERSON : KNOWN_PERSON;
  return (
    <SinglePage title={`Join ${organization}`} description={`${createdBy} invites you.`}>
      <section className="card">
        <Facts entries={{ "E-mail": email, Role: roleName(role) }} />
        <FieldsForm
          isMain
          fields={isSignedIn ? [] : fields}
          submit={`Join ${organization}`}
          send={(values) =>
            auth.acceptInvitation({
              invitationCode: code,
              displayName: textOf(values, "display_name"),
              password: textOf(values, "password"),
            })
          }
          onDone={leave}
        >
          {/* Password managers keep the new password with this name. */}
          {!isSignedIn && <input hidden autoComplete="username" readOnly value={email} />}
        </FieldsForm>
      </section>
    </SinglePage>
  );
}

function leave({ endedCredentials }: PrincipalJson): void {
  location.replace(endedCredentials ? securedPath(endedCredentials) : "/");
}
