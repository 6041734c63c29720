// Package deploy tests examples/deploy and docs/guides/deploy.md: files that Kubernetes, systemd,
// Docker and Slurm read, and the page that explains them. It contains no code.
//
// # Model
//
// Files are parsed, and their parts compared with each other and with what the library reads from
// the environment. The commands of the page are given to goccl, which has to understand them. With
// the build tag nodes, and as root, the programs of the image also run: in network namespaces, each
// in a directory that has nothing else.
package deploy
