/** Approves the login of a program on this machine, which waits on a loopback address. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { logins } from "../../api/clients.ts";
import { me } from "../../api/session.ts";
import { SinglePage } from "../../shell/single-page.tsx";
import { AllowOrDeny } from "./allow-or-deny.tsx";

/** The loopback address of a waiting program; the server checks it again. */
const LOOPBACK = /^http:\/\/(?:127\.0\.0\.1|\[::1\]):\d{1,5}(?:\/[^#\s]*)?$/;

export function Authorize() {
  const { data: person } = useSuspenseQuery(me);
  const query = new URLSearchParams(location.search);
  const given = (name: string): string => query.get(name) ?? "";
  const redirectUri = given("redirect_uri");
  const state = given("state");
  if (!LOOPBACK.test(redirectUri) || state === "") {
    return (
      <SinglePage
        title="This link cannot be used"
        person={person}
        description="It is not one that npx tessera-platform cloud login opens. Start it again on your machine."
      />
    );
  }
  const answer = async (isAllowed: boolean, organization: string): Promise<void> => {
    if (isAllowed) {
      const { redirectUrl = "/" } = await logins.authorizeLogin({
        organization,
        redirectUri,
        codeChallenge: given("code_challenge"),
        codeChallengeMethod: given("code_challenge_method"),
        state,
        hostName: given("host_name"),
      });
      location.assign(redirectUrl);
    } else {
      const back = new URL(redirectUri);
      back.searchParams.set("error", "access_denied");
      back.searchParams.set("state", state);
      location.assign(back);
    }
  };
  return (
    <SinglePage
      title="Sign in on the command line"
      person={person}
      description="A program asks for a token of yours, valid for 90 days. Allow it only if you have just started it."
    >
      <AllowOrDeny
        facts={{
          Machine: given("host_name") || "unknown",
          "Signed in as": person.email ?? "",
        }}
        organizations={person.organizations ?? []}
        answer={answer}
      />
    </SinglePage>
  );
}
