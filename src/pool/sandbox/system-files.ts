/** What sandboxes have of the settings of the machine. */

/**
 * The system's certificates, which HTTP clients read, and its settings of OpenSSL, each
 * by its name: in the folders around them, machines keep the private keys of their servers.
 */
export const SYSTEM_FILES = [
  "/etc/ssl/certs",
  "/etc/ssl/cert.pem",
  "/etc/ssl/openssl.cnf",
  "/etc/pki/tls/certs",
  "/etc/pki/tls/cert.pem",
  "/etc/pki/tls/openssl.cnf",
  "/etc/pki/ca-trust/extracted",
  "/usr/share/ca-certificates",
  "/usr/local/share/ca-certificates",
  "/var/lib/ca-certificates",
];
