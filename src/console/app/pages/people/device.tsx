/** Approves the login of a program on another machine, by the code that it shows. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { PrincipalJson } from "../../../../../gen/tessera/v1/auth_pb.js";
import type { DeviceLoginJson } from "../../../../../gen/tessera/v1/login_pb.js";
import { logins } from "../../api/clients.ts";
import { me } from "../../api/session.ts";
import { SinglePage } from "../../shell/single-page.tsx";
import { FieldsForm, textOf } from "../../ui/fields-form.tsx";
import { Notice } from "../../ui/notice.tsx";
import { secondText } from "../../ui/time-range.ts";
import { AllowOrDeny } from "./allow-or-deny.tsx";

export function Device() {
  const { data: person } = useSuspenseQuery(me);
  const [login, setLogin] = useState<DeviceLoginJson>();
  if (login !== undefined) {
    return <Question login={login} person={person} />;
  }
  return (
    <SinglePage
      title="Sign in on another machine"
      person={person}
      description={
        <>
          Enter the code that <code>npx tessera-platform cloud login</code> shows there.
        </>
      }
    >
      <section className="card code-input">
        <FieldsForm
          isMain
          fields={[
            {
              name: "user_code",
              label: "Code",
              autoComplete: "off",
              maxLength: 32,
              placeholder: "XXXX-XXXX",
              hint: "Eight letters, with or without the hyphen.",
              defaultValue: new URLSearchParams(location.search).get("user_code") ?? "",
            },
          ]}
          submit="Continue"
          send={(values) => logins.getDeviceLogin({ userCode: textOf(values, "user_code") })}
          onDone={setLogin}
        />
      </section>
      <p className="secondary">
        Only enter a code from a terminal that you started yourself: it signs in as{" "}
        <bdi>{person.email}</bdi>.
      </p>
    </SinglePage>
  );
}

interface QuestionProps {
  readonly login: DeviceLoginJson;
  readonly person: PrincipalJson;
}

function Question({ login, person }: QuestionProps) {
  const { userCode = "", hostName, address, createdAt } = login;
  const [answered, setAnswered] = useState<boolean>();
  if (answered !== undefined) {
    return (
      <SinglePage title={answered ? "Done" : "Denied"} person={person}>
        <Notice kind={answered ? "success" : "warning"}>
          {answered
            ? "The other machine is signed in. You can close this page."
            : "The program gets no token. You can close this page."}
        </Notice>
      </SinglePage>
    );
  }
  return (
    <SinglePage
      title="Sign in on another machine"
      person={person}
      description="A program asks for a token of yours, valid for 90 days. Allow it only if it is yours and shows this code."
    >
      <AllowOrDeny
        facts={{
          Code: userCode,
          Machine: hostName || "unknown",
          Address: address || "unknown",
          ...(createdAt !== undefined && { "Asked at": secondText(Date.parse(createdAt)) }),
          "Signed in as": person.email ?? "",
        }}
        organizations={person.organizations ?? []}
        answer={async (approve, organization) => {
          await logins.answerDeviceLogin({ userCode, approve, organization });
          setAnswered(approve);
        }}
      />
    </SinglePage>
  );
}
