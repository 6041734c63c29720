package tool

import (
	"os"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// loadConfig loads the configuration at path, or if that is empty the one that
// programs find.
func loadConfig(path string) (cfg *config.Config, found measure.Config, err error) {
	if path != "" {
		found.FoundBy = "--config"
		if cfg, err = config.Load(path); err == nil {
			cfg, err = cfg.WithEnvironment(os.Getenv)
		}
	} else if cfg, err = config.Find(); err == nil {
		switch {
		case os.Getenv("GOCCL_CONFIG") != "":
			found.FoundBy = "GOCCL_CONFIG"
		case cfg.File() == config.Default().File():
			found.FoundBy = "built in"
		default:
			found.FoundBy = "working directory"
		}
	}
	if err != nil {
		return nil, found, err
	}
	found.File = cfg.File()
	return cfg, found, nil
}
