package main

import (
	"fmt"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// `etcd DIR`: one member with its data in DIR, listening on DIR/client.sock: a
// socket needs no port that somebody else could have. It never syncs to the disk:
// its data has to outlive a kill of it, not of the machine.
func etcd() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("etcd takes a directory, and nothing else"))
	}
	// What it tells others of its addresses has to look like a host with a port,
	// which as the address of a socket is a file in the current directory.
	if err := os.Chdir(os.Args[1]); err != nil {
		fail(err)
	}
	peer := &url.URL{Scheme: "unix", Host: "localhost:0"}
	client := clientURL(os.Args[1])
	for _, socket := range []string{peer.Host, client.Path} {
		// One that was killed leaves them behind.
		_ = os.Remove(socket)
	}
	config := embed.NewConfig()
	config.Dir = "data"
	config.UnsafeNoFsync = true
	config.ListenPeerUrls, config.AdvertisePeerUrls = urls(peer), urls(peer)
	config.ListenClientUrls, config.AdvertiseClientUrls = urls(client), urls(peer)
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.LogLevel = "warn"
	// Printing each request that a busy machine answers late makes it busier.
	config.WarningUnaryRequestDuration = time.Minute
	// As kubeadm has it: the API server's watch caches count on it.
	config.WatchProgressNotifyInterval = 5 * time.Second
	server, err := embed.StartEtcd(config)
	if err != nil {
		fail(err)
	}
	fail(<-server.Err())
}
