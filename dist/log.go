package dist

import (
	"fmt"
	"log/slog"
	"os"
)

// logVariable makes InitProcessGroup log to standard error, from a level on.
const logVariable = "GOCCL_LOG"

// logLevels are the values of logVariable.
var logLevels = map[string]slog.Level{"warn": slog.LevelWarn, "info": slog.LevelInfo, "debug": slog.LevelDebug}

// requestedLogger returns the logger for which logVariable asks, nil if it is not set.
func requestedLogger() (*slog.Logger, error) {
	name := os.Getenv(logVariable)
	if name == "" {
		return nil, nil
	}
	level, ok := logLevels[name]
	if !ok {
		return nil, &ConfigError{File: "environment", Key: logVariable, Message: fmt.Sprintf("%q is none of warn, info and debug", name)}
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})), nil
}
