/** Sets the name by which other people see the person. */
import { useQueryClient } from "@tanstack/react-query";
import type { PrincipalJson } from "../../../../../gen/tessera/v1/auth_pb.js";
import { auth } from "../../api/clients.ts";
import { me } from "../../api/session.ts";
import { FieldsForm, textOf } from "../../ui/fields-form.tsx";
import { useToast } from "../../ui/toasts.tsx";

export function ChangeName({ person }: { readonly person: PrincipalJson }) {
  const queryClient = useQueryClient();
  const toast = useToast();
  return (
    <FieldsForm
      fields={[
        {
          name: "display_name",
          label: "Your name",
          hint: "What people in your organizations see. Without one, they see your e-mail address.",
          autoComplete: "name",
          optional: true,
          maxLength: 100,
          defaultValue: person.displayName ?? "",
        },
      ]}
      submit="Save name"
      send={(values) => auth.changeDisplayName({ displayName: textOf(values, "display_name") })}
      onDone={(changed) => {
        queryClient.setQueryData(me.queryKey, changed);
        void queryClient.invalidateQueries({ queryKey: ["members"] });
        toast("Your name is saved");
      }}
    />
  );
}
