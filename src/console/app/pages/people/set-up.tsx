/** Makes the first person and the first organization of a platform. */
import { getRouteApi } from "@tanstack/react-router";
import { auth } from "../../api/clients.ts";
import { SinglePage } from "../../shell/single-page.tsx";
import { FieldsForm, type FormField, textOf } from "../../ui/fields-form.tsx";

type Name = "setup_code" | "organization" | "email" | "display_name" | "password";

const CODE: FormField<Name> = {
  name: "setup_code",
  label: "Setup code",
  hint: "What stands after #code= in the link that the server printed at its start.",
  autoComplete: "off",
};
const FIELDS: readonly FormField<Name>[] = [
  {
    name: "organization",
    label: "Organization",
    hint: "Lower case letters, digits and hyphens, such as acme. It never changes.",
    autoComplete: "organization",
    maxLength: 63,
  },
  { name: "email", label: "E-mail address", type: "email", autoComplete: "username" },
  { name: "display_name", label: "Your name", optional: true, autoComplete: "name" },
  {
    name: "password",
    label: "Password",
    type: "password",
    hint: "At least 10 characters.",
    autoComplete: "new-password",
    minLength: 10,
  },
];

const route = getRouteApi("/setup");

export function SetUp() {
  const { code } = route.useRouteContext();
  return (
    <SinglePage
      title="Set up this platform"
      description="You become the first person here, and the admin of the first organization."
    >
      <section className="card">
        <FieldsForm
          isMain
          fields={code === "" ? [CODE, ...FIELDS] : FIELDS}
          submit="Set up"
          send={(values) =>
            auth.setUp({
              setupCode: code || textOf(values, "setup_code"),
              organization: textOf(values, "organization"),
              email: textOf(values, "email"),
              displayName: textOf(values, "display_name"),
              password: textOf(values, "password"),
            })
          }
          onDone={() => location.replace("/")}
        />
      </section>
    </SinglePage>
  );
}
