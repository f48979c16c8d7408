/**
 * The schema of accounts, for both databases. Keys begin with the organization
 * wherever a row belongs to one; lookups by digest have a unique index. No
 * table contains a plain password, token value, session or code, only digests,
 * hashes and sealed values.
 *
 * `text` is the SQL type of text. In Postgres it has to declare byte-wise
 * comparison, which is SQLite's default.
 *
 * Postgres plans by statistics that lag behind: on a new database it may read
 * all rows of an organization instead of the one that a join selects. Frequent
 * statements leave it no choice. Secondary indexes begin with the column that
 * they are for, unless they serve a list of an organization; and a join by the
 * whole key compares its organization with `organization_id || ''`, an opaque
 * expression, so that the index is entered with both columns.
 */
export function accountsSchema(text: string): string {
  return [peopleSchema, organizationsSchema, tokensSchema, eventsSchema, loginsSchema]
    .map((part) => part(text))
    .join("\n");
}

/** The column by which a person is an operator; see decision 63. */
export function operatorsSchema(): string {
  return `
  ALTER TABLE users ADD COLUMN operator integer NOT NULL DEFAULT 0;
  `;
}

/**
 * Which addresses are verified, and which invitations prove one.
 *
 * Accounts that exist already: verified are those without a password, which a
 * provider's verified address made, and the first admin, whom the operator set
 * up. Any other may have been made by who saw the link of its invitation, also
 * one that was linked to a provider later: its password may still be theirs.
 * The first organization is the operator's, and may show links.
 */
export function verifiedAddressesSchema(): string {
  const first = "SELECT organization_id FROM organizations ORDER BY created_at_ms, organization_id";
  return `
  ALTER TABLE users ADD COLUMN email_verified integer NOT NULL DEFAULT 0;
  ALTER TABLE organizations ADD COLUMN invitation_links_enabled integer NOT NULL DEFAULT 0;
  -- Whether the link was sent by mail and shown to nobody.
  ALTER TABLE invitations ADD COLUMN mailed integer NOT NULL DEFAULT 0;
  UPDATE organizations SET invitation_links_enabled = 1
    WHERE organization_id = (${first} LIMIT 1);
  UPDATE users SET email_verified = 1 WHERE password_hash IS NULL OR user_id = (
    SELECT m.user_id FROM memberships m JOIN organizations o
      ON o.organization_id = m.organization_id AND o.created_at_ms = m.joined_at_ms
    WHERE m.organization_id = (${first} LIMIT 1)
    ORDER BY m.joined_at_ms, m.user_id LIMIT 1);
  `;
}

/** What a person sees of their sessions, to recognize them. */
export function sessionUsesSchema(text: string): string {
  return `
  -- The browser or program that signed in, in a few words.
  ALTER TABLE sessions ADD COLUMN client ${text} NOT NULL DEFAULT '';
  -- Of the last recorded use, or of the sign-in before the first.
  ALTER TABLE sessions ADD COLUMN address ${text} NOT NULL DEFAULT '';
  ALTER TABLE sessions ADD COLUMN used_at_ms bigint;
  `;
}

/** Counters, people and their sessions. */
function peopleSchema(text: string): string {
  return `
  -- Numbers that are counted up under the lock of their row.
  CREATE TABLE counters (
    name ${text} NOT NULL PRIMARY KEY,
    value bigint NOT NULL
  );
  INSERT INTO counters (name, value) VALUES ('setup', 0), ('changes', 0), ('device_logins', 0);

  CREATE TABLE users (
    user_id ${text} NOT NULL PRIMARY KEY,
    -- It never changes: memberships have a copy.
    email ${text} NOT NULL UNIQUE,
    display_name ${text} NOT NULL,
    password_hash ${text},
    created_at_ms bigint NOT NULL
  );

  -- What OpenID Connect providers call people.
  CREATE TABLE identities (
    issuer ${text} NOT NULL,
    subject ${text} NOT NULL,
    user_id ${text} NOT NULL,
    PRIMARY KEY (issuer, subject)
  );

  CREATE TABLE sessions (
    session_id ${text} NOT NULL PRIMARY KEY,
    digest ${text} NOT NULL UNIQUE,
    user_id ${text} NOT NULL,
    created_at_ms bigint NOT NULL,
    authenticated_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL
  );
  CREATE INDEX sessions_by_user ON sessions (user_id);
  CREATE INDEX sessions_expiry ON sessions (expires_at_ms);

  -- The one setup link, until it is used.
  CREATE TABLE setup_codes (
    digest ${text} NOT NULL PRIMARY KEY,
    created_at_ms bigint NOT NULL
  );
`;
}

/** Organizations with their members, invitations and deployments. */
function organizationsSchema(text: string): string {
  return `  CREATE TABLE organizations (
    organization_id ${text} NOT NULL PRIMARY KEY,
    name ${text} NOT NULL UNIQUE,
    display_name ${text} NOT NULL,
    created_at_ms bigint NOT NULL,
    monitoring_enabled integer NOT NULL DEFAULT 0,
    reveal_enabled integer NOT NULL DEFAULT 1,
    -- Counted up by whoever changes anything in the organization: its lock.
    locks bigint NOT NULL DEFAULT 0
  );

  CREATE TABLE memberships (
    organization_id ${text} NOT NULL,
    user_id ${text} NOT NULL,
    email ${text} NOT NULL,
    role ${text} NOT NULL,
    joined_at_ms bigint NOT NULL,
    PRIMARY KEY (organization_id, user_id)
  );
  CREATE UNIQUE INDEX memberships_by_email ON memberships (organization_id, email);
  CREATE INDEX memberships_by_user ON memberships (user_id);

  CREATE TABLE invitations (
    organization_id ${text} NOT NULL,
    invitation_id ${text} NOT NULL UNIQUE,
    digest ${text} NOT NULL UNIQUE,
    email ${text} NOT NULL,
    role ${text} NOT NULL,
    created_by ${text} NOT NULL,
    created_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL,
    PRIMARY KEY (organization_id, invitation_id)
  );
  CREATE UNIQUE INDEX invitations_in_organization ON invitations (organization_id, email);
  CREATE INDEX invitations_by_email ON invitations (email);
  CREATE INDEX invitations_expiry ON invitations (expires_at_ms);

  CREATE TABLE deployments (
    organization_id ${text} NOT NULL,
    deployment_id ${text} NOT NULL,
    name ${text} NOT NULL,
    requires_token integer NOT NULL,
    created_at_ms bigint NOT NULL,
    created_by ${text} NOT NULL,
    updated_at_ms bigint NOT NULL,
    PRIMARY KEY (organization_id, deployment_id)
  );
  CREATE UNIQUE INDEX deployments_by_name ON deployments (organization_id, name);
`;
}

/** API tokens with their deployments and secrets. */
function tokensSchema(text: string): string {
  return `  CREATE TABLE tokens (
    organization_id ${text} NOT NULL,
    token_id ${text} NOT NULL,
    kind ${text} NOT NULL,
    -- Whose it is, of personal ones; of others who made it, null for a token.
    user_id ${text},
    name ${text} NOT NULL,
    description ${text} NOT NULL,
    developer_operations integer NOT NULL,
    protected_endpoint integer NOT NULL,
    monitoring integer NOT NULL,
    all_deployments integer NOT NULL,
    expires_at_ms bigint NOT NULL,
    not_before_ms bigint,
    -- A list, as JSON.
    allowed_networks ${text} NOT NULL,
    created_at_ms bigint NOT NULL,
    created_by ${text} NOT NULL,
    updated_at_ms bigint NOT NULL,
    last_used_at_ms bigint,
    last_used_address ${text},
    version integer NOT NULL,
    PRIMARY KEY (organization_id, token_id)
  );
  CREATE INDEX tokens_by_user ON tokens (user_id, organization_id, token_id);

  CREATE TABLE token_deployments (
    organization_id ${text} NOT NULL,
    token_id ${text} NOT NULL,
    deployment_id ${text} NOT NULL,
    -- The deployment's, which never changes.
    name ${text} NOT NULL,
    PRIMARY KEY (organization_id, token_id, deployment_id)
  );
  CREATE INDEX token_deployments_by_deployment ON token_deployments (deployment_id);

  -- The values of a token: the current one, which has no end of its own, and
  -- the one before while it lives on. The indexes allow one of each.
  CREATE TABLE token_secrets (
    organization_id ${text} NOT NULL,
    token_id ${text} NOT NULL,
    digest ${text} NOT NULL UNIQUE,
    digest_key_id ${text} NOT NULL,
    hint ${text} NOT NULL,
    sealed ${text},
    valid_until_ms bigint,
    PRIMARY KEY (organization_id, token_id, digest)
  );
  CREATE UNIQUE INDEX token_secrets_current ON token_secrets (organization_id, token_id)
    WHERE valid_until_ms IS NULL;
  CREATE UNIQUE INDEX token_secrets_previous ON token_secrets (organization_id, token_id)
    WHERE valid_until_ms IS NOT NULL;
  CREATE INDEX token_secrets_expiry ON token_secrets (valid_until_ms)
    WHERE valid_until_ms IS NOT NULL;
  CREATE INDEX token_secrets_sealed ON token_secrets (digest) WHERE sealed IS NOT NULL;
`;
}

/** Access to join workers on other machines. */
export function workerTokensSchema(): string {
  return "ALTER TABLE tokens ADD COLUMN worker integer NOT NULL DEFAULT 0;";
}

/** Requests of organizations for monitoring tokens: when and by whom; null: there is none. */
export function monitoringRequestsSchema(text: string): string {
  return `
  ALTER TABLE organizations ADD COLUMN monitoring_asked_at_ms bigint;
  ALTER TABLE organizations ADD COLUMN monitoring_asked_by ${text};
  `;
}

/** Change events and the audit log. */
function eventsSchema(text: string): string {
  return `  -- What nodes may have remembered and have to forget.
  CREATE TABLE changes (
    sequence bigint NOT NULL PRIMARY KEY,
    time_ms bigint NOT NULL,
    kind ${text} NOT NULL,
    id ${text} NOT NULL
  );

  -- Rows are added and never changed. One deed may be an event in several organizations.
  CREATE TABLE audit_events (
    organization_id ${text} NOT NULL,
    event_id ${text} NOT NULL,
    time_ms bigint NOT NULL,
    action ${text} NOT NULL,
    actor ${text} NOT NULL,
    actor_id ${text} NOT NULL,
    address ${text} NOT NULL,
    subject_id ${text} NOT NULL,
    subject ${text} NOT NULL,
    -- Names and values, as JSON.
    details ${text} NOT NULL,
    PRIMARY KEY (organization_id, event_id)
  );
`;
}

/** Logins of the command line. */
function loginsSchema(text: string): string {
  return `  CREATE TABLE login_codes (
    digest ${text} NOT NULL PRIMARY KEY,
    organization_id ${text} NOT NULL,
    user_id ${text} NOT NULL,
    code_challenge ${text} NOT NULL,
    redirect_uri ${text} NOT NULL,
    host_name ${text} NOT NULL,
    expires_at_ms bigint NOT NULL
  );
  CREATE INDEX login_codes_by_user ON login_codes (organization_id, user_id);
  CREATE INDEX login_codes_expiry ON login_codes (expires_at_ms);

  CREATE TABLE device_logins (
    device_digest ${text} NOT NULL PRIMARY KEY,
    user_code_digest ${text} NOT NULL UNIQUE,
    host_name ${text} NOT NULL,
    address ${text} NOT NULL,
    created_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL,
    interval_ms bigint NOT NULL,
    asked_at_ms bigint NOT NULL,
    -- pending, approved or denied; by whom, and for which organization.
    answer ${text} NOT NULL,
    organization_id ${text},
    user_id ${text}
  );
  CREATE INDEX device_logins_by_user ON device_logins (organization_id, user_id);
  CREATE INDEX device_logins_expiry ON device_logins (expires_at_ms);
  `;
}
