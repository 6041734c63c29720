// Package tls lets ranks encrypt what they send each other between processes by the transport tcp,
// by TLS 1.3 and certificates in files. A program links it by one import:
//
//	import _ "github.com/goccl/goccl/transport/tcp/tls"
//
// and calls nothing of it. It is used if GOCCL_TLS_DIR is set, which has to be so on all ranks or
// on none. That is a directory, with files in PEM form:
//
//	ca.crt   certificates of those who sign the ranks' certificates
//	tls.crt  this rank's certificate, and those between it and ca.crt
//	tls.key  its private key
//
// These are the names of a secret of cert-manager in Kubernetes. Ranks may share the files.
//
// # Model
//
// Two ranks first prove that they know the job's secret (package internal/handshake), and then ask
// each other for a certificate that ca.crt has signed, for servers or clients, and that is valid
// now. Its names do not matter: ranks are known by the secret. They prove that once more within
// TLS, so that a certificate alone does not let anybody read what they send, even if ca.crt also
// signs those of others.
//
// # Concurrency
//
// Connections have one reader and one writer at a time.
//
// # Failure
//
// A certificate that is not accepted fails both ranks' attempt at once. The errors name the file,
// and whose host it was.
package tls
