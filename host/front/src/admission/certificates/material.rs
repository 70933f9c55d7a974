//! Certificates, keys and their dates: what there is, and what is due. Pure
//! functions, but for the making of keys.
//!
//! The authority is exchanged without a gap: first the new one stands beside the
//! old one in what clients trust; when they know it, the server's certificate
//! is signed by it; when that is served everywhere, the old one goes.

use super::lives::{CertificateError, Lives};
use super::paths::{self, Asked};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// For clients whose clocks are behind.
const BACKDATED: Duration = Duration::from_secs(3600);

/// The end of the year 9999: no certificate can say more.
const LATEST: u64 = 253_402_300_799;

fn unusable(what: &str, error: impl std::fmt::Display) -> CertificateError {
    CertificateError::Unusable(format!("{what}: {error}"))
}

/// A certificate's dates, in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Dates {
    made: u64,
    ends: u64,
}

impl Dates {
    fn new(now: u64, life: Duration) -> Dates {
        Dates { made: now, ends: now.saturating_add(life.as_secs()) }
    }

    /// Whether a certificate can have them: what is kept may be anything.
    fn are_possible(&self) -> bool {
        self.made <= self.ends && self.ends <= LATEST
    }

    /// Two thirds of its life.
    fn due(&self) -> u64 {
        self.made + self.ends.saturating_sub(self.made) / 3 * 2
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Authority {
    name: String,
    dates: Dates,
    certificate: String,
}

/// All that is kept, except for the keys the same for every reader.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Material {
    /// Those that clients are to trust, the newest first.
    authorities: Vec<Authority>,
    /// The private key of the newest authority.
    authority_key: String,
    /// The one of the authority before it, while that one still signs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_before: Option<String>,
    /// The authority that signed the certificate.
    signed_by: String,
    names: Vec<String>,
    dates: Dates,
    certificate: String,
    key: String,
    /// Where the API server asks, the newest first.
    #[serde(default)]
    paths: Vec<Asked>,
}

impl std::fmt::Debug for Material {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Material")
            .field("names", &self.names)
            .field("dates", &self.dates)
            .finish_non_exhaustive()
    }
}

/// What is to be done.
#[derive(Debug)]
pub enum Due {
    /// This is to be kept instead, for the reason.
    Write(Box<Material>, &'static str),
    /// Nothing before this time, in seconds since 1970.
    NothingUntil(u64),
}

impl Material {
    /// What clients are to trust, as PEM.
    pub fn bundle(&self) -> String {
        self.authorities.iter().map(|authority| authority.certificate.as_str()).collect()
    }

    /// The server's certificate, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The server's key, as PEM.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Where the API server may ask.
    pub(super) fn paths(&self) -> &[Asked] {
        &self.paths
    }

    /// Until when it is good, in seconds since 1970.
    pub fn ends(&self) -> u64 {
        self.dates.ends
    }

    /// What a server serves; checked, so that nothing is served that clients
    /// would refuse.
    pub fn certified(
        &self,
        provider: &Arc<CryptoProvider>,
        now: u64,
    ) -> Result<CertifiedKey, CertificateError> {
        let chain = certificates("the server's certificate", &self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())
            .map_err(|error| unusable("the server's key", error))?;
        let served = CertifiedKey::from_der(chain, key, provider)
            .map_err(|error| unusable("the server's certificate and key", error))?;
        let mut roots = RootCertStore::empty();
        for root in certificates("the authorities", &self.bundle())? {
            roots.add(root).map_err(|error| unusable("an authority", error))?;
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone())
            .build()
            .map_err(|error| unusable("the authorities", error))?;
        let leaf = served
            .end_entity_cert()
            .map_err(|error| unusable("the server's certificate", error))?;
        for name in &self.names {
            let server =
                ServerName::try_from(name.as_str()).map_err(|error| unusable(name, error))?;
            let at = UnixTime::since_unix_epoch(Duration::from_secs(now));
            verifier
                .verify_server_cert(leaf, &[], &server, &[], at)
                .map_err(|error| unusable(&format!("the certificate for {name}"), error))?;
        }
        Ok(served)
    }

    /// Whether it is not good yet by this clock.
    pub(super) fn is_of_later(&self, now: u64) -> bool {
        self.dates.made > now.saturating_add(BACKDATED.as_secs())
    }

    /// What a server serves, also by a clock that is behind the one of whoever made it: what is not
    /// good yet by this clock is good by those of others.
    pub(super) fn served(
        &self,
        provider: &Arc<CryptoProvider>,
        now: u64,
    ) -> Result<CertifiedKey, CertificateError> {
        self.certified(provider, now.max(self.dates.made))
    }

    /// Makes a certificate for these names, signed by the newest authority that clients know
    /// already.
    fn sign(&mut self, names: &[String], now: u64, lives: &Lives) -> Result<(), CertificateError> {
        let (signer, key) = match (self.authorities.as_slice(), &self.key_before) {
            ([_, before, ..], Some(key)) if before.dates.ends > now => (before, key),
            ([newest, ..], _) => (newest, &self.authority_key),
            ([], _) => return Err(CertificateError::Unusable("there is no authority".to_owned())),
        };
        let issuer_key = KeyPair::from_pem(key)?;
        let issuer = Issuer::new(authority_params(&signer.name, &signer.dates), issuer_key);
        let mut dates = Dates::new(now, lives.server);
        // What is signed does not outlive who signed.
        dates.ends = dates.ends.min(signer.dates.ends);
        let mut params = CertificateParams::new(names)?;
        dated(&mut params, &dates);
        params.distinguished_name = called("tread webhook");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        self.signed_by = signer.name.clone();
        self.names = names.to_vec();
        self.dates = dates;
        self.certificate = certificate.pem();
        self.key = key.serialize_pem();
        Ok(())
    }

    /// A new authority, which is trusted from now on and signs nothing yet.
    fn add_authority(&mut self, now: u64, lives: &Lives) -> Result<(), CertificateError> {
        let dates = Dates::new(now, lives.authority);
        let key = KeyPair::generate()?;
        // Two of one name and different keys would confuse clients.
        let name = format!("tread webhook authority {now} {:.8}", hex(key.public_key_raw()));
        let certificate = authority_params(&name, &dates).self_signed(&key)?.pem();
        self.authorities.insert(0, Authority { name, dates, certificate });
        let before = std::mem::replace(&mut self.authority_key, key.serialize_pem());
        self.key_before = (!before.is_empty()).then_some(before);
        Ok(())
    }

    fn fresh(names: &[String], now: u64, lives: &Lives) -> Result<Material, CertificateError> {
        let mut material = Material {
            authorities: Vec::new(),
            authority_key: String::new(),
            key_before: None,
            signed_by: String::new(),
            names: Vec::new(),
            dates: Dates { made: 0, ends: 0 },
            certificate: String::new(),
            key: String::new(),
            paths: vec![Asked::fresh(now)?],
        };
        material.add_authority(now, lives)?;
        material.sign(names, now, lives)?;
        Ok(material)
    }
}

/// What is due with what is kept. `trusted`: clients were told to trust all
/// authorities that are kept, and where to ask.
pub fn due(
    kept: Option<&Material>,
    names: &[String],
    trusted: bool,
    now: u64,
    lives: &Lives,
) -> Result<Due, CertificateError> {
    let fresh = |why| Ok(Due::Write(Box::new(Material::fresh(names, now, lives)?), why));
    let Some(kept) = kept else { return fresh("there was none") };
    let Some(newest) = kept.authorities.first() else { return fresh("there was no authority") };
    let mut dates = kept.authorities.iter().map(|authority| &authority.dates).chain([&kept.dates]);
    if !dates.all(Dates::are_possible) {
        return fresh("its dates were spoilt");
    }
    if newest.dates.ends <= now {
        return fresh("the authority had ended");
    }
    let mut next = kept.clone();
    let overlap = lives.overlap.as_secs();
    let signs = kept.signed_by == newest.name;
    // One that ends with its authority is made anew by the next one, and not again and again.
    let renewable = kept.authorities.iter().any(|authority| {
        authority.name == kept.signed_by && kept.dates.ends < authority.dates.ends
    });
    let known = newest.dates.made + overlap;
    if kept.names != names {
        next.sign(names, now, lives)?;
        return Ok(Due::Write(Box::new(next), "it is for other names"));
    }
    if kept.dates.ends <= now {
        next.sign(names, now, lives)?;
        return Ok(Due::Write(Box::new(next), "it had ended"));
    }
    if !signs && trusted && known <= now {
        next.key_before = None;
        next.sign(names, now, lives)?;
        return Ok(Due::Write(Box::new(next), "the new authority is known"));
    }
    if signs && newest.dates.due() <= now {
        next.add_authority(now, lives)?;
        return Ok(Due::Write(Box::new(next), "the authority is in its last third"));
    }
    if renewable && kept.dates.due() <= now {
        next.sign(names, now, lives)?;
        return Ok(Due::Write(Box::new(next), "it is in its last third"));
    }
    let served = kept.dates.made + overlap;
    if signs && kept.authorities.len() > 1 && served <= now {
        next.authorities.truncate(1);
        return Ok(Due::Write(Box::new(next), "the old authority signs nothing any more"));
    }
    // By the clock of whoever made it is at least this late: a path of then is not spoilt.
    let latest = now.max(kept.dates.made);
    if let Some((paths, why)) = paths::due(&kept.paths, trusted, latest, lives)? {
        next.paths = paths;
        return Ok(Due::Write(Box::new(next), why));
    }
    let mut times = vec![kept.dates.ends, newest.dates.ends];
    times.extend(renewable.then(|| kept.dates.due()));
    times.extend(paths::until(&kept.paths, now, lives));
    if signs {
        times.push(newest.dates.due());
        times.extend((kept.authorities.len() > 1).then_some(served));
    } else if known > now {
        times.push(known);
    }
    Ok(Due::NothingUntil(times.into_iter().min().unwrap_or(now)))
}

fn authority_params(name: &str, dates: &Dates) -> CertificateParams {
    let mut params = CertificateParams::default();
    dated(&mut params, dates);
    params.distinguished_name = called(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

fn dated(params: &mut CertificateParams, dates: &Dates) {
    let epoch = date_time_ymd(1970, 1, 1);
    params.not_before = epoch + Duration::from_secs(dates.made.saturating_sub(BACKDATED.as_secs()));
    params.not_after = epoch + Duration::from_secs(dates.ends);
}

fn certificates(what: &str, pem: &str) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(what, error))
}

fn hex(bytes: &[u8]) -> String {
    // The end: keys begin alike.
    bytes.iter().rev().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
