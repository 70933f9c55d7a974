package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A supervisor holds a lock on its directory for as long as it lives. A directory
// without one was left by a supervisor that was killed.

func makeDirectory(parent string) (string, error) {
	removeLeft(parent)
	for {
		dir, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return "", err
		}
		// It stays open, and locked, until this process ends.
		handle, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Flock(handle, unix.LOCK_EX)
		}
		// Another supervisor may have taken it for one that was left.
		if err == unix.ENOENT || err == nil && !exists(dir) {
			continue
		}
		if err != nil {
			return "", err
		}
		for _, part := range []string{"etcd", "logs", "tmp"} {
			if err := os.Mkdir(filepath.Join(dir, part), 0o700); err != nil {
				return "", err
			}
		}
		return dir, nil
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func removeLeft(parent string) {
	left, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		handle, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if unix.Flock(handle, unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = unix.Close(handle)
	}
}
