//go:build !namespace_proxy

package main

import "go.podman.io/image/v5/pkg/sysregistriesv2"

// namespaceProxy is unknown to this release of the library.
func namespaceProxy(sysregistriesv2.Endpoint) string { return "" }
